# hvdrun_options: command line, host list, plan and the texts made from the option table. Pure, no gRPC.
add_library(hvdrun_options STATIC
  argv_scan.cc build_parts.cc check_build.cc completion.cc dry_run.cc duration.cc help.cc hostlist.cc man_page.cc
  manual.cc option_values.cc options.cc options_table.cc output_file.cc plan.cc report_options.cc
  shell_words.cc signal_options.cc
  timeline_options.cc watch_options.cc)
add_library(hvdrun::options ALIAS hvdrun_options)
target_link_libraries(hvdrun_options PUBLIC hvdrun::base hvdrun::proto PRIVATE hvdrun::flags)
set_property(SOURCE options.cc man_page.cc APPEND PROPERTY
  COMPILE_DEFINITIONS HVDRUN_VERSION="${PROJECT_VERSION}")

# The man page and the completion, made from the table on every change of it.
add_executable(hvdrun_print_docs print_docs_main.cc)
target_link_libraries(hvdrun_print_docs PRIVATE hvdrun::flags hvdrun::options)
set_target_properties(hvdrun_print_docs PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
set(HVDRUN_MAN_PAGE ${PROJECT_BINARY_DIR}/docs/man/hvdrun.1)
set(HVDRUN_BASH_COMPLETION ${PROJECT_BINARY_DIR}/docs/completion/hvdrun)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/docs/man ${PROJECT_BINARY_DIR}/docs/completion)
add_custom_command(OUTPUT ${HVDRUN_MAN_PAGE}
  COMMAND hvdrun_print_docs man > ${HVDRUN_MAN_PAGE} DEPENDS hvdrun_print_docs)
add_custom_command(OUTPUT ${HVDRUN_BASH_COMPLETION}
  COMMAND hvdrun_print_docs bash > ${HVDRUN_BASH_COMPLETION} DEPENDS hvdrun_print_docs)
add_custom_target(hvdrun_docs ALL DEPENDS ${HVDRUN_MAN_PAGE} ${HVDRUN_BASH_COMPLETION})

hvdrun_test(options_test LIBS hvdrun::options
  SRCS build_parts_test.cc options_test.cc hostlist_test.cc plan_test.cc shell_words_test.cc manual_test.cc
  report_options_test.cc signal_options_test.cc timeline_options_test.cc watch_options_test.cc)

# groff warns about what a reader would see wrongly; where it is missing the page's structure is still
# checked by options_test.
find_program(GROFF groff)
if(GROFF)
  add_test(NAME man_page_test COMMAND sh -c
    "out=$(${GROFF} -man -ww -z '${HVDRUN_MAN_PAGE}' 2>&1) && test -z \"$out\" || { echo \"$out\"; exit 1; }")
  set_tests_properties(man_page_test PROPERTIES LABELS unit TIMEOUT 30)
endif()
add_dependencies(unit_tests hvdrun_docs)  # one of them reads the man page
