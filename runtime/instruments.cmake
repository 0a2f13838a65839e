# hvdrun::instruments: what a worker knows and tells about itself, without torch and gRPC: the flight
# recorder and the timeline.
add_library(hvdrun_instruments STATIC
  flight_recorder.cc json_array_file.cc timeline.cc timeline_environment.cc trace_event.cc)
add_library(hvdrun::instruments ALIAS hvdrun_instruments)
target_link_libraries(hvdrun_instruments PUBLIC hvdrun::base
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)
set_target_properties(hvdrun_instruments PROPERTIES POSITION_INDEPENDENT_CODE ON)

hvdrun_test(flight_recorder_test SRCS flight_recorder_test.cc
            LIBS hvdrun::instruments nlohmann_json::nlohmann_json)
hvdrun_test(timeline_test LIBS hvdrun::instruments nlohmann_json::nlohmann_json
            SRCS timeline_test.cc timeline_environment_test.cc timeline_kill_test.cc)
