# End-to-end tests: hosts of tests/testbed, the programs of this build. One ctest entry for each file;
# they need root and are reported as skipped without it. The full counts stand under the label long.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

# hvdrun_e2e(NAME [LIGHT] TIMEOUT seconds [LONG_TIMEOUT seconds])
function(hvdrun_e2e name)
  cmake_parse_arguments(T "LIGHT" "TIMEOUT;LONG_TIMEOUT" "" ${ARGN})
  set(command ${Python3_EXECUTABLE} -u ${PROJECT_SOURCE_DIR}/tests/e2e/${name}_test.py)
  add_test(NAME e2e_${name} COMMAND ${command})
  set_tests_properties(e2e_${name} PROPERTIES LABELS e2e TIMEOUT ${T_TIMEOUT}
                       ENVIRONMENT "HVDRUN_BIN=$<TARGET_FILE_DIR:hvdrun>/hvdrun")
  set(names e2e_${name})
  if(T_LONG_TIMEOUT)
    add_test(NAME long_${name} COMMAND ${command})
    set_tests_properties(
      long_${name} PROPERTIES LABELS long TIMEOUT ${T_LONG_TIMEOUT}
      ENVIRONMENT "HVDRUN_BIN=$<TARGET_FILE_DIR:hvdrun>/hvdrun;HVDRUN_LONG=1")
    list(APPEND names long_${name})
  endif()
  # Times are asserted, so one file of them at a time; beside it a light one, which asserts none.
  set(lock test_hosts)
  if(T_LIGHT)
    set(lock light_test_hosts)
  endif()
  set_tests_properties(${names} PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK ${lock})
endfunction()

add_test(NAME testbed COMMAND ${Python3_EXECUTABLE} -u ${PROJECT_SOURCE_DIR}/tests/testbed/testbed_test.py)
# It looks for what is left of any test hosts.
set_tests_properties(testbed PROPERTIES LABELS e2e TIMEOUT 120 RESOURCE_LOCK "test_hosts;light_test_hosts")

if(TARGET hvdrun)
  hvdrun_e2e(launch TIMEOUT 240 LONG_TIMEOUT 1200)
  hvdrun_e2e(env LIGHT TIMEOUT 180)
  hvdrun_e2e(hosts LIGHT TIMEOUT 120)
  hvdrun_e2e(failure TIMEOUT 240 LONG_TIMEOUT 3600)
  hvdrun_e2e(signals TIMEOUT 240 LONG_TIMEOUT 900)
  hvdrun_e2e(report TIMEOUT 240)
  hvdrun_e2e(restart TIMEOUT 120)
  hvdrun_e2e(containment TIMEOUT 300 LONG_TIMEOUT 3000)
  hvdrun_e2e(loss TIMEOUT 300 LONG_TIMEOUT 3600)
  hvdrun_e2e(ssh TIMEOUT 180)
  hvdrun_e2e(fabric TIMEOUT 180 LONG_TIMEOUT 900)
  hvdrun_e2e(options LIGHT TIMEOUT 120)
  hvdrun_e2e(output TIMEOUT 240 LONG_TIMEOUT 900)
  hvdrun_e2e(horovod LIGHT TIMEOUT 120 LONG_TIMEOUT 3600)
  hvdrun_e2e(rendezvous TIMEOUT 120 LONG_TIMEOUT 600)
  hvdrun_e2e(runtime TIMEOUT 300)
  hvdrun_e2e(stage LIGHT TIMEOUT 120)
  hvdrun_e2e(stall TIMEOUT 240)
  hvdrun_e2e(footprint TIMEOUT 120 LONG_TIMEOUT 600)
  hvdrun_e2e(service TIMEOUT 180 LONG_TIMEOUT 1200)
  hvdrun_e2e(tls TIMEOUT 120)
  hvdrun_e2e(hvdctl TIMEOUT 120)
  hvdrun_e2e(attack TIMEOUT 180 LONG_TIMEOUT 900)
  hvdrun_e2e(booking TIMEOUT 120 LONG_TIMEOUT 300)
  if(NOT HVDRUN_SANITIZE)
    # On hosts with systemd, with the Debian package of this build.
    hvdrun_e2e(systemd TIMEOUT 240 LONG_TIMEOUT 1800)
    add_test(NAME debian_package COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target hvdrun_deb)
    set_tests_properties(debian_package PROPERTIES LABELS e2e TIMEOUT 300
                         FIXTURES_SETUP debian_package)
    set_tests_properties(e2e_systemd long_systemd PROPERTIES FIXTURES_REQUIRED debian_package)
  endif()
  hvdrun_e2e(mpi LIGHT TIMEOUT 180 LONG_TIMEOUT 600)
  hvdrun_e2e(timeline LIGHT TIMEOUT 120)
  hvdrun_e2e(train TIMEOUT 300 LONG_TIMEOUT 900)
  # Needs slurm-wlm and munge, section [long] of packages.txt.
  add_test(NAME long_slurm COMMAND ${Python3_EXECUTABLE} -u ${PROJECT_SOURCE_DIR}/tests/e2e/slurm_test.py)
  set_tests_properties(long_slurm PROPERTIES LABELS long TIMEOUT 240 SKIP_RETURN_CODE 77 RESOURCE_LOCK test_hosts
                       ENVIRONMENT "HVDRUN_BIN=$<TARGET_FILE_DIR:hvdrun>/hvdrun")
  include(${CMAKE_CURRENT_LIST_DIR}/chaos/parts.cmake)
endif()
