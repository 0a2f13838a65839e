# NCCL with several ranks on one GPU; skipped where there is none.
if(TARGET hvdrun_nccl_communicator AND TARGET hvdrun)
  add_executable(nccl_phase_worker ${CMAKE_CURRENT_LIST_DIR}/nccl_phase_worker.cc)
  target_link_libraries(nccl_phase_worker PRIVATE hvdrun::flags hvdrun::runtime_static hvdrun::cudart)
  foreach(folder IN LISTS nvidia_includes)
    target_compile_options(nccl_phase_worker PRIVATE "SHELL:-idirafter ${folder}")
  endforeach()
  set_target_properties(nccl_phase_worker PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/gpu)
  add_test(NAME gpu_nccl COMMAND ${Python3_EXECUTABLE} -u ${CMAKE_CURRENT_LIST_DIR}/nccl_test.py)
  set_tests_properties(gpu_nccl PROPERTIES LABELS gpu TIMEOUT 600 SKIP_RETURN_CODE 77
                       ENVIRONMENT "BIN_FOLDER=$<TARGET_FILE_DIR:hvdrun>")
endif()
