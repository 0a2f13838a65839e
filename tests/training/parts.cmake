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

# The same model in PyTorch: by itself, and field by field beside ours.
set(torch_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
set(reference ${PROJECT_SOURCE_DIR}/tests/reference)

if(TARGET petrv2)
  add_test(NAME reference_golden COMMAND ${torch_python} ${reference}/golden_test.py)
  add_test(NAME reference_peer COMMAND ${torch_python} ${reference}/peer_test.py)
  add_test(NAME reference_parity COMMAND ${torch_python} ${reference}/parity_test.py $<TARGET_FILE:petrv2>)
  set_tests_properties(reference_golden reference_peer reference_parity
                       PROPERTIES LABELS training TIMEOUT 300 ENVIRONMENT "OMP_NUM_THREADS=1")
  hvdrun_training_test(trainer TIMEOUT 900 LONG_TIMEOUT 3600)
endif()
