# hvdrun_test(NAME SRCS file... [LIBS target...] [LABEL label] [TIMEOUT seconds] [TORCH])
# A GoogleTest program and its ctest entry; the default label is "unit". TORCH: it includes training/torch.h.
find_package(GTest REQUIRED)
add_custom_target(unit_tests)  # all programs with the labels "unit" and "process"

function(hvdrun_test name)
  cmake_parse_arguments(T "TORCH" "LABEL;TIMEOUT" "SRCS;LIBS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 180)
  endif()
  add_executable(${name} ${T_SRCS})
  if(T_TORCH)
    hvdrun_uses_torch(${name})  # its precompiled header holds for one level of optimisation only
  else()
    # A test's own code need not be fast, and compiles in half the time this way.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_link_libraries(${name} PRIVATE hvdrun::flags ${T_LIBS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(T_LABEL MATCHES "^(unit|process)$")
    add_dependencies(unit_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT})
endfunction()
