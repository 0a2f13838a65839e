# tests/programs/mpi_hello, by MPICH's compiler wrapper (Debian: libmpich-dev). Where that is missing
# the end-to-end test says so and is skipped.
find_program(HVDRUN_MPICC mpicc.mpich)
if(HVDRUN_MPICC)
  set(mpi_hello ${CMAKE_BINARY_DIR}/tests/programs/mpi_hello)
  add_custom_command(OUTPUT ${mpi_hello}
    COMMAND ${HVDRUN_MPICC} -O1 -Wall -Wextra -o ${mpi_hello} ${CMAKE_CURRENT_LIST_DIR}/mpi_hello.c
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/mpi_hello.c)
  add_custom_target(test_program_mpi_hello ALL DEPENDS ${mpi_hello})
  add_dependencies(test_programs test_program_mpi_hello)
endif()
