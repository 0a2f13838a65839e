# The chaos suite. CI draws 12 cases (HVDRUN_CHAOS_SEED, else the day), and 5 over tls of single
# faults that need no half minute until the nodes are clean; `make chaos` runs all.
set(chaos ${Python3_EXECUTABLE} -u ${CMAKE_CURRENT_LIST_DIR}/chaos_test.py)
add_test(NAME e2e_chaos COMMAND ${chaos} --count 12)
add_test(NAME e2e_chaos_tls COMMAND ${chaos} --transport tls --count 5
         --only "^(front|agent|launcher)/(kill|restart|pause)/(starting|running|stopping|writing)$")
add_test(NAME long_chaos COMMAND ${chaos})
add_test(NAME long_chaos_tls COMMAND ${chaos} --transport tls)
add_test(NAME long_chaos_default_timings COMMAND ${chaos} --count 20 --timings default)
set_tests_properties(e2e_chaos e2e_chaos_tls PROPERTIES LABELS e2e TIMEOUT 300)
set_tests_properties(long_chaos long_chaos_tls long_chaos_default_timings PROPERTIES LABELS long TIMEOUT 1800)
set_tests_properties(
  e2e_chaos e2e_chaos_tls long_chaos long_chaos_tls long_chaos_default_timings
  PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK test_hosts
             ENVIRONMENT "HVDRUN_BIN=$<TARGET_FILE_DIR:hvdrun>/hvdrun")
add_test(NAME chaos_cases COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/cases_test.py)
set_tests_properties(chaos_cases PROPERTIES LABELS unit TIMEOUT 30)
