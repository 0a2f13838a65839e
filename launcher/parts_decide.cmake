# What the launcher decides, apart from what it does: pure parts, and the writer of output.
add_library(hvdrun_decide STATIC
  clock_offset.cc evidence.cc fabric_choice.cc gpu_stats.cc horovod_contract.cc ip_address.cc line_assembler.cc loss_text.cc
  output_writer.cc pmi_fence.cc pmi_world.cc policy.cc policy_text.cc report.cc report_error_file.cc report_evidence.cc restart.cc silence.cc stall.cc
  status_line.cc tail.cc visible.cc watch_records.cc)
target_link_libraries(hvdrun_decide PUBLIC hvdrun::proto hvdrun::base
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

hvdrun_test(decide_test LIBS hvdrun_decide hvdrun_options protobuf
  SRCS evidence_test.cc fabric_choice_test.cc gpu_stats_test.cc horovod_contract_test.cc line_assembler_test.cc
  loss_text_test.cc output_writer_test.cc pmi_fence_test.cc policy_test.cc report_test.cc report_error_file_test.cc
  report_evidence_test.cc restart_test.cc silence_test.cc stall_test.cc status_test.cc watch_records_test.cc)
