# petrv2 train as a program. The full counts stand under the label long.
function(hvdrun_training_test name)
  cmake_parse_arguments(T "" "TIMEOUT;LONG_TIMEOUT" "" ${ARGN})
  set(command ${Python3_EXECUTABLE} -u ${PROJECT_SOURCE_DIR}/tests/training/${name}_test.py)
  set(programs "PETRV2_BIN=$<TARGET_FILE_DIR:hvdrun>/petrv2;HVDRUN_BIN=$<TARGET_FILE_DIR:hvdrun>/hvdrun")
  add_test(NAME training_${name} COMMAND ${command})
  set_tests_properties(training_${name} PROPERTIES LABELS training TIMEOUT ${T_TIMEOUT}
                       ENVIRONMENT "${programs}")
  add_test(NAME long_${name} COMMAND ${command})
  set_tests_properties(long_${name} PROPERTIES LABELS long TIMEOUT ${T_LONG_TIMEOUT}
                       ENVIRONMENT "${programs};HVDRUN_LONG=1")
endfunction()

if(TARGET petrv2)
  hvdrun_training_test(trainer TIMEOUT 240 LONG_TIMEOUT 3600)
endif()
