# hvdrun_options: command line, host list, plan and the texts made from the option table. Pure, no gRPC.
find_package(yaml-cpp REQUIRED)
add_library(hvdrun_options STATIC
  allocation.cc gpu_choice.cc gpu_list.cc host_entry.cc host_filter.cc host_list_builder.cc host_range.cc
  host_sources.cc hostfile.cc slurm_allocation.cc
  argv_scan.cc build_parts.cc check_build.cc completion.cc completion_fish.cc completion_zsh.cc config_file.cc
  dry_run.cc duration.cc env_file.cc env_options.cc env_size.cc
  env_text.cc foreign_options.cc help.cc horovod_options.cc hostlist.cc local_rank_word.cc line_stamp.cc
  man_page.cc manual.cc nearest_name.cc option_values.cc options.cc options_checks.cc options_table.cc
  options_table_environment.cc options_table_horovod.cc options_table_nodes.cc options_table_output.cc
  options_table_run.cc options_table_told.cc output_file.cc output_options.cc set_option.cc setting_names.cc settings.cc
  show_config.cc
  placeholders.cc plan.cc report_options.cc shell_words.cc signal_options.cc timeline_options.cc
  watch_options.cc)
add_library(hvdrun::options ALIAS hvdrun_options)
target_link_libraries(hvdrun_options PUBLIC hvdrun::base hvdrun::proto PRIVATE hvdrun::flags yaml-cpp)
set_property(SOURCE options.cc man_page.cc APPEND PROPERTY
  COMPILE_DEFINITIONS HVDRUN_VERSION="${PROJECT_VERSION}")

# The man page and the completion, made from the table on every change of it.
add_executable(hvdrun_print_docs print_docs_main.cc)
target_link_libraries(hvdrun_print_docs PRIVATE hvdrun::flags hvdrun::options)
set_target_properties(hvdrun_print_docs PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
set(HVDRUN_MAN_PAGE ${PROJECT_BINARY_DIR}/docs/man/hvdrun.1)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/docs/man ${PROJECT_BINARY_DIR}/docs/completion)
add_custom_command(OUTPUT ${HVDRUN_MAN_PAGE}
  COMMAND hvdrun_print_docs man > ${HVDRUN_MAN_PAGE} DEPENDS hvdrun_print_docs)
set(completions)
foreach(shell_and_name bash=hvdrun zsh=_hvdrun fish=hvdrun.fish)
  string(REPLACE "=" ";" parts ${shell_and_name})
  list(GET parts 0 shell)
  list(GET parts 1 name)
  set(file ${PROJECT_BINARY_DIR}/docs/completion/${name})
  add_custom_command(OUTPUT ${file} COMMAND hvdrun_print_docs ${shell} > ${file} DEPENDS hvdrun_print_docs)
  list(APPEND completions ${file})
endforeach()
add_custom_target(hvdrun_docs ALL DEPENDS ${HVDRUN_MAN_PAGE} ${completions})

hvdrun_test(options_test LIBS hvdrun::options
  SRCS allocation_test.cc gpu_choice_test.cc host_filter_test.cc hostfile_test.cc
  build_parts_test.cc options_test.cc hostlist_test.cc plan_test.cc shell_words_test.cc manual_test.cc
  env_file_test.cc env_text_test.cc local_rank_word_test.cc completion_test.cc config_file_test.cc horovod_options_test.cc line_stamp_test.cc options_checks_test.cc
  output_options_test.cc settings_test.cc show_config_test.cc placeholders_test.cc report_options_test.cc signal_options_test.cc timeline_options_test.cc watch_options_test.cc)

# groff warns about what a reader would see wrongly; where it is missing the page's structure is still
# checked by options_test.
find_program(GROFF groff)
if(GROFF)
  add_test(NAME man_page_test COMMAND sh -c
    "out=$(${GROFF} -man -ww -z '${HVDRUN_MAN_PAGE}' 2>&1) && test -z \"$out\" || { echo \"$out\"; exit 1; }")
  set_tests_properties(man_page_test PROPERTIES LABELS unit TIMEOUT 30)
endif()
# The shells themselves, where they are installed.
foreach(shell_and_name zsh=_hvdrun fish=hvdrun.fish)
  string(REPLACE "=" ";" parts ${shell_and_name})
  list(GET parts 0 shell)
  list(GET parts 1 name)
  find_program(SHELL_${shell} ${shell})
  if(SHELL_${shell})
    add_test(NAME ${shell}_completion_test
             COMMAND ${SHELL_${shell}} -n ${PROJECT_BINARY_DIR}/docs/completion/${name})
    set_tests_properties(${shell}_completion_test PROPERTIES LABELS unit TIMEOUT 30)
  endif()
endforeach()
add_dependencies(unit_tests hvdrun_docs)  # one of them reads the man page
