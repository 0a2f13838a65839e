# Tests of the runtime that need several processes.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

add_executable(collective_worker ${CMAKE_CURRENT_LIST_DIR}/collective_worker.cc)
target_link_libraries(collective_worker PRIVATE hvdrun::flags hvdrun::communicator_environment)
set_target_properties(collective_worker PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/multiproc)

add_test(NAME multiproc_collectives
         COMMAND ${Python3_EXECUTABLE} -u ${CMAKE_CURRENT_LIST_DIR}/collectives_test.py)
set_tests_properties(multiproc_collectives PROPERTIES LABELS e2e TIMEOUT 240
                     ENVIRONMENT "WORKER=$<TARGET_FILE:collective_worker>")
