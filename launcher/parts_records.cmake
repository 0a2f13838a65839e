# Files of the launcher's: the run told to programs (--report, --events), and what --stage sends.
add_library(hvdrun_records STATIC events.cc report_file.cc stage_sender.cc stage_source.cc)
target_link_libraries(hvdrun_records PUBLIC hvdrun_decide hvdrun_options nlohmann_json::nlohmann_json
                      PRIVATE hvdrun::flags)

hvdrun_test(records_test LIBS hvdrun_records protobuf SRCS events_test.cc report_file_test.cc stage_test.cc)
