# The program: what a job does (links the decisions, the transports and gRPC) and its main.
add_library(hvdrun_job STATIC
  agent_link.cc attempts.cc input_reader.cc job.cc job_end.cc job_env.cc job_fabric.cc job_gpus.cc job_hangs.cc job_horovod.cc job_nodes.cc job_output.cc
  job_reap.cc job_records.cc job_signals.cc job_stage.cc job_start.cc job_state.cc job_timeline.cc job_watch.cc
  preflight.cc rank_files.cc reap_answer.cc signals.cc start_phases.cc stop_wishes.cc)
set_property(SOURCE job_start.cc main.cc APPEND PROPERTY COMPILE_DEFINITIONS HVDRUN_VERSION="${PROJECT_VERSION}")
target_link_libraries(hvdrun_job
  PUBLIC hvdrun_options hvdrun_decide hvdrun_records hvdrun_timeline hvdrun_transport hvdrun_services
  PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

add_executable(hvdrun main.cc)
target_link_libraries(hvdrun PRIVATE hvdrun_job ${HVDRUN_GRPC_FOR_LAUNCHER} hvdrun::flags)
target_link_options(hvdrun PRIVATE -Wl,--gc-sections $<$<NOT:$<CONFIG:Debug>>:-s>)
# hvdrun carries the agent: it is found beside it.
add_dependencies(hvdrun hvd-agent)

hvdrun_test(job_test LIBS hvdrun_job PkgConfig::GRPC protobuf
  SRCS input_reader_test.cc job_state_test.cc preflight_test.cc rank_files_test.cc reap_answer_test.cc
  start_phases_test.cc stop_wishes_test.cc)
