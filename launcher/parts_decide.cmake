# What the launcher decides, apart from what it does: pure parts, and the writer of output.
add_library(hvdrun_decide STATIC
  clock_offset.cc evidence.cc fabric_choice.cc gpu_stats.cc ip_address.cc line_assembler.cc output_writer.cc policy.cc
  policy_text.cc report.cc report_error_file.cc report_evidence.cc restart.cc silence.cc stall.cc status_line.cc tail.cc visible.cc watch_records.cc)
target_link_libraries(hvdrun_decide PUBLIC hvdrun::proto hvdrun::base protobuf
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

foreach(name evidence fabric_choice gpu_stats line_assembler output_writer policy report report_error_file report_evidence restart silence stall status watch_records)
  hvdrun_test(${name}_test SRCS ${name}_test.cc LIBS hvdrun_decide)
endforeach()
