# Included by training/CMakeLists.txt, where the precompiled header of torch is: it saves half a minute
# in each of these.
set(sync_dir ${PROJECT_SOURCE_DIR}/runtime)
target_precompile_headers(hvdrun_gradient_sync REUSE_FROM hvdrun_training_torch)

hvdrun_test(gradient_sync_test TORCH LABEL training
            SRCS ${sync_dir}/gradient_synchronizer_test.cc
                 ${sync_dir}/gradient_sync_compression_test.cc
                 ${sync_dir}/gradient_sync_failure_test.cc
                 ${sync_dir}/gradient_sync_overlap_test.cc
            LIBS hvdrun::gradient_sync hvdrun::instruments nlohmann_json::nlohmann_json)
hvdrun_test(gradient_sync_gpu_test TORCH LABEL training SRCS ${sync_dir}/gradient_sync_gpu_test.cc
            LIBS hvdrun::gradient_sync hvdrun::instruments)

add_executable(gradient_sync_cost ${PROJECT_SOURCE_DIR}/tests/bench/gradient_sync_cost.cc)
hvdrun_uses_torch(gradient_sync_cost)
target_link_libraries(gradient_sync_cost PRIVATE hvdrun::flags hvdrun::gradient_sync)
set_target_properties(gradient_sync_cost PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bench)
