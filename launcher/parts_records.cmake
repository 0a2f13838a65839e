# The run told to programs: --report and --events.
add_library(hvdrun_records STATIC events.cc report_file.cc)
target_link_libraries(hvdrun_records PUBLIC hvdrun_decide hvdrun_options nlohmann_json::nlohmann_json
                      PRIVATE hvdrun::flags)

foreach(name events report_file)
  hvdrun_test(${name}_test SRCS ${name}_test.cc LIBS hvdrun_records)
endforeach()
