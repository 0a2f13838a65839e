# Gradients of the ranks: what decides (hvdrun::sync_plan, without torch) and what works on libtorch's
# autograd (hvdrun::gradient_sync). The tests that use torch are in gradient_sync_tests.cmake.
add_library(hvdrun_sync_plan STATIC
  arrival_order.cc bucket_plan.cc bucket_progress.cc compression.cc plan_check.cc sync_options.cc)
add_library(hvdrun::sync_plan ALIAS hvdrun_sync_plan)
target_link_libraries(hvdrun_sync_plan PUBLIC hvdrun::communicator
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)
set_target_properties(hvdrun_sync_plan PROPERTIES POSITION_INDEPENDENT_CODE ON)
# The loops over elements.
set_source_files_properties(compression.cc PROPERTIES COMPILE_OPTIONS -O3)

add_library(hvdrun_gradient_sync STATIC
  gradient_sync_broadcast.cc gradient_sync_bucket.cc gradient_sync_channel.cc
  gradient_sync_convert.cc gradient_sync_core.cc gradient_sync_cuda.cc gradient_sync_hooks.cc
  gradient_sync_plan.cc gradient_sync_report.cc gradient_sync_times.cc gradient_synchronizer.cc)
add_library(hvdrun::gradient_sync ALIAS hvdrun_gradient_sync)
# Two files with torch's headers instead of eleven: without its precompiled header, which is of training/.
set_target_properties(hvdrun_gradient_sync PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
target_link_libraries(hvdrun_gradient_sync PUBLIC hvdrun::sync_plan hvdrun::torch
                      PRIVATE hvdrun::flags hvdrun::instruments)

hvdrun_test(sync_plan_test
            SRCS arrival_order_test.cc bucket_plan_test.cc bucket_progress_test.cc
                 compression_test.cc plan_check_test.cc sync_options_test.cc
            LIBS hvdrun::sync_plan)
