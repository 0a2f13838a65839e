# The shim: single-threaded, no gRPC. Needs a protobuf at the final link (archive in the agent).
add_library(hvdrun_shim STATIC
  shim/containment.cc
  shim/crew.cc
  shim/dead_cgroups.cc
  shim/exit_report.cc
  shim/folder_lock.cc
  shim/frames.cc
  shim/input_feed.cc
  shim/job_cgroup.cc
  shim/job_dir.cc
  shim/ladder.cc
  shim/link.cc
  shim/log_pump.cc
  shim/oom.cc
  shim/pmi_wires.cc
  shim/poller.cc
  shim/proc.cc
  shim/remains.cc
  shim/shim.cc
  shim/shim_hold.cc
  shim/shim_main.cc
  shim/spawn.cc
  shim/worker.cc)
add_library(hvdrun::shim ALIAS hvdrun_shim)
target_link_libraries(hvdrun_shim PUBLIC hvdrun::proto hvdrun::base PRIVATE hvdrun::flags)

hvdrun_test(shim_unit_test
  SRCS shim/containment_test.cc shim/dead_cgroups_test.cc shim/frames_test.cc shim/input_feed_test.cc shim/job_cgroup_test.cc shim/job_dir_test.cc
       shim/ladder_test.cc shim/log_pump_test.cc shim/oom_test.cc shim/pmi_wires_test.cc shim/remains_test.cc shim/worker_test.cc
  LIBS hvdrun::shim protobuf)

hvdrun_test(shim_process_test
            SRCS shim/shim_process_test.cc shim/shim_hold_process_test.cc shim/shim_input_process_test.cc
                 shim/shim_pmi_process_test.cc
            LIBS hvdrun::shim protobuf LABEL process TIMEOUT 120)
target_compile_definitions(shim_process_test PRIVATE
  HVDRUN_TEST_PROGRAMS="${CMAKE_BINARY_DIR}/tests/programs")
add_dependencies(shim_process_test test_programs)
