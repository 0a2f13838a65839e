# Tests of the runtime that need several processes.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

add_executable(collective_worker ${CMAKE_CURRENT_LIST_DIR}/collective_worker.cc)
target_link_libraries(collective_worker PRIVATE hvdrun::flags hvdrun::meeting)
set_target_properties(collective_worker PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/multiproc)

add_test(NAME multiproc_collectives
         COMMAND ${Python3_EXECUTABLE} -u ${CMAKE_CURRENT_LIST_DIR}/collectives_test.py)
set_tests_properties(multiproc_collectives PROPERTIES LABELS e2e TIMEOUT 240
                     ENVIRONMENT "WORKER=$<TARGET_FILE:collective_worker>")

# Faults in every phase of a job's life, under hvdrun; the full counts stand under the label long.
if(TARGET hvdrun)
  add_executable(phase_worker ${CMAKE_CURRENT_LIST_DIR}/phase_worker.cc)
  target_link_libraries(phase_worker PRIVATE hvdrun::flags hvdrun::meeting)
  set_target_properties(phase_worker PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/multiproc)
  set(phase_faults_environment "HVDRUN_BIN=$<TARGET_FILE_DIR:hvdrun>/hvdrun"
                               "PHASE_WORKER=$<TARGET_FILE:phase_worker>")
  set(phase_faults_command ${Python3_EXECUTABLE} -u
                           ${CMAKE_CURRENT_LIST_DIR}/phase_faults_test.py)
  add_test(NAME multiproc_phase_faults COMMAND ${phase_faults_command})
  set_tests_properties(multiproc_phase_faults PROPERTIES LABELS e2e TIMEOUT 300
                       ENVIRONMENT "${phase_faults_environment}")
  add_test(NAME long_phase_faults COMMAND ${phase_faults_command})
  set_tests_properties(long_phase_faults PROPERTIES LABELS long TIMEOUT 3600
                       ENVIRONMENT "${phase_faults_environment};HVDRUN_LONG=1")
  set_tests_properties(multiproc_phase_faults long_phase_faults PROPERTIES
                       SKIP_RETURN_CODE 77 RESOURCE_LOCK test_hosts)
endif()

# The runtime under every launcher, with the shared library and the examples that link it.
add_executable(runtime_worker ${CMAKE_CURRENT_LIST_DIR}/runtime_worker.cc)
target_link_libraries(runtime_worker PRIVATE hvdrun::flags hvdrun::runtime)
add_executable(c_api_worker ${CMAKE_CURRENT_LIST_DIR}/c_api_worker.c)
target_link_libraries(c_api_worker PRIVATE hvdrun::runtime)
target_compile_options(c_api_worker PRIVATE -Wall -Wextra -pedantic)
set_target_properties(c_api_worker PROPERTIES
                      C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
set_target_properties(runtime_worker c_api_worker PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/multiproc)

add_test(NAME multiproc_runtime
         COMMAND ${Python3_EXECUTABLE} -u ${CMAKE_CURRENT_LIST_DIR}/runtime_test.py)
set(runtime_environment "WORKER=$<TARGET_FILE:runtime_worker>"
                        "C_WORKER=$<TARGET_FILE:c_api_worker>"
                        "EXAMPLES=${CMAKE_BINARY_DIR}/examples")
if(TARGET hvdrun)
  list(APPEND runtime_environment "HVDRUN_BIN=$<TARGET_FILE:hvdrun>")
endif()
set_tests_properties(multiproc_runtime PROPERTIES LABELS e2e TIMEOUT 300
                     ENVIRONMENT "${runtime_environment}")
