# Programs that tests/bench/*.py measure, in ${CMAKE_BINARY_DIR}/tests/bench.
add_executable(allreduce_bench ${CMAKE_CURRENT_LIST_DIR}/allreduce_bench.cc)
target_link_libraries(allreduce_bench PRIVATE hvdrun::flags hvdrun::communicator)
set_target_properties(allreduce_bench PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bench)
