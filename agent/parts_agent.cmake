# hvdrun_agent: the job on this node; its *_edge files speak gRPC. hvd-agent: the program, with the
# shim in it, one static file that needs nothing of the node.
add_library(hvdrun_agent STATIC
  arguments.cc beat_book.cc cgroup_place.cc dead_job_dirs.cc cpu_binding.cc cpu_topology.cc earlier_jobs.cc evidence_collector.cc executable.cc fabric.cc fabric_patience.cc fabric_probe.cc
  front_admission.cc front_control.cc front_desk.cc front_line.cc gpu_claim.cc gpu_table.cc job_agent.cc job_door.cc job_place.cc job_record.cc
  gpu_lines.cc gpu_memory.cc gpu_question.cc gpu_watch.cc greeting.cc guard.cc
  horovod_server.cc horovod_store.cc interfaces.cc job.cc job_dir.cc job_earlier.cc job_horovod.cc job_messages.cc job_stage.cc job_state.cc
  job_timeline.cc job_vitals.cc job_watch.cc kernel_log.cc kernel_view.cc leftovers.cc master_port.cc
  output_queue.cc outside_program.cc own_children.cc port_holder.cc pmi_desk.cc pmi_line.cc pmi_server.cc preflight.cc process_limit.cc program_answer.cc rank_family.cc reap.cc reap_process.cc
  rendezvous_edge.cc serve.cc server_edge.cc service.cc service_config.cc service_socket.cc session.cc
  service_edge.cc shim_channel.cc shim_process.cc shim_watch.cc spool.cc stage_cache.cc stage_entries.cc stage_intake.cc stdio_stream.cc stop_reason.cc store_relay.cc
  survivor_watch.cc timeline_files.cc tls_edge.cc users.cc vital_book.cc watch_edge.cc worker_binding.cc worker_spec.cc)
add_library(hvdrun::agent ALIAS hvdrun_agent)
add_dependencies(hvdrun_agent hvdrun_services)  # its generated headers
target_link_libraries(hvdrun_agent PUBLIC hvdrun::proto hvdrun::tls hvdrun::base PRIVATE hvdrun::flags)
target_compile_definitions(hvdrun_agent PUBLIC HVDRUN_VERSION="${PROJECT_VERSION}")
target_compile_options(hvdrun_agent PRIVATE -ffunction-sections -fdata-sections)

if(TARGET hvdrun_shim)
  add_executable(hvd-agent main.cc)
  target_link_libraries(hvd-agent PRIVATE hvdrun_agent hvdrun_shim hvdrun_services hvdrun_messages
                        ${HVDRUN_GRPC_FOR_AGENT} ${HVDRUN_YAML_FOR_AGENT} hvdrun::flags)
  target_link_options(hvd-agent PRIVATE -Wl,--gc-sections $<$<NOT:$<CONFIG:Debug>>:-s>)
  if(NOT HVDRUN_SANITIZE)
    target_link_options(hvd-agent PRIVATE -static)
  endif()
endif()
# gRPC's generated services hide their own synchronous methods.
set_source_files_properties(rendezvous_edge.cc service_edge.cc PROPERTIES
                            COMPILE_OPTIONS -Wno-overloaded-virtual)

# GCC 12 takes Asio's own delete for another's in a coroutine of this size.
set_source_files_properties(tls_edge.cc PROPERTIES COMPILE_OPTIONS -Wno-mismatched-new-delete)

# All of the agent: a part of it cannot be linked alone when its sources are compiled together.
set(agent_parts hvdrun_agent hvdrun_shim hvdrun_services PkgConfig::GRPC protobuf OpenSSL::SSL yaml-cpp)
hvdrun_test(agent_test LIBS ${agent_parts}
  SRCS beat_book_test.cc cpu_binding_test.cc executable_test.cc fabric_patience_test.cc fabric_test.cc front_line_test.cc gpu_claim_test.cc gpu_lines_test.cc
  horovod_server_test.cc horovod_store_test.cc interfaces_test.cc job_dir_test.cc job_record_test.cc job_state_test.cc kernel_log_test.cc
  kernel_view_test.cc output_queue_test.cc pmi_desk_test.cc pmi_line_test.cc pmi_server_test.cc process_limit_test.cc stage_test.cc
  stop_reason_test.cc store_relay_test.cc timeline_files_test.cc users_test.cc vital_book_test.cc worker_binding_test.cc worker_spec_test.cc)
# These have children, and reap whatever ends.
hvdrun_test(agent_containment_test LIBS ${agent_parts}
  SRCS arguments_test.cc cgroup_place_test.cc dead_job_dirs_test.cc earlier_jobs_test.cc gpu_memory_test.cc
  greeting_test.cc own_children_test.cc port_holder_test.cc reap_test.cc service_config_test.cc service_socket_test.cc)
hvdrun_test(outside_program_test SRCS outside_program_test.cc program_answer_test.cc LIBS ${agent_parts})
hvdrun_test(agent_process_test SRCS agent_process_test.cc agent_rendezvous_process_test.cc agent_service_process_test.cc
            LIBS hvdrun::base hvdrun_services PkgConfig::GRPC protobuf)
target_compile_definitions(agent_process_test PRIVATE HVD_AGENT_PATH="$<TARGET_FILE:hvd-agent>")
add_dependencies(agent_process_test hvd-agent)
