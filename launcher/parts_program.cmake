# The program: what a job does (links the decisions, the transports and gRPC) and its main.
add_library(hvdrun_job STATIC
  agent_link.cc input_reader.cc job.cc job_end.cc job_fabric.cc job_hangs.cc job_nodes.cc job_reap.cc job_records.cc
  job_signals.cc job_start.cc job_state.cc job_timeline.cc job_watch.cc preflight.cc reap_answer.cc signals.cc)
set_property(SOURCE job_start.cc main.cc APPEND PROPERTY COMPILE_DEFINITIONS HVDRUN_VERSION="${PROJECT_VERSION}")
target_link_libraries(hvdrun_job
  PUBLIC hvdrun_options hvdrun_decide hvdrun_records hvdrun_timeline hvdrun_transport hvdrun_services PkgConfig::GRPC protobuf
  PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

add_executable(hvdrun main.cc)
target_link_libraries(hvdrun PRIVATE hvdrun::flags hvdrun_job)
# hvdrun carries the agent: it is found beside it.
add_dependencies(hvdrun hvd-agent)

hvdrun_test(job_state_test SRCS job_state_test.cc LIBS hvdrun_job)
hvdrun_test(input_reader_test SRCS input_reader_test.cc LIBS hvdrun_job)
hvdrun_test(reap_answer_test SRCS reap_answer_test.cc LIBS hvdrun_job)
hvdrun_test(preflight_test SRCS preflight_test.cc LIBS hvdrun_job)
