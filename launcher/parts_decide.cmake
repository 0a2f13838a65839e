# What the launcher decides, apart from what it does: pure parts, and the writer of output.
add_library(hvdrun_decide STATIC
  clock_offset.cc fabric_choice.cc ip_address.cc line_assembler.cc output_writer.cc policy.cc
  report.cc stall.cc status_line.cc tail.cc visible.cc)
target_link_libraries(hvdrun_decide PUBLIC hvdrun::proto hvdrun::base protobuf
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

foreach(name fabric_choice line_assembler output_writer policy report stall status)
  hvdrun_test(${name}_test SRCS ${name}_test.cc LIBS hvdrun_decide)
endforeach()
