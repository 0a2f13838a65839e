# What the ranks of a training tell each other.
add_library(hvdrun_petrv2_agreement STATIC petrv2/trainer/job_facts.cc petrv2/trainer/rank_agreement.cc)
target_link_libraries(hvdrun_petrv2_agreement
  PUBLIC hvdrun::communicator PRIVATE hvdrun::flags hvdrun::proto nlohmann_json::nlohmann_json)
hvdrun_test(petrv2_rank_agreement_test SRCS petrv2/trainer/rank_agreement_test.cc
            LIBS hvdrun_petrv2_agreement)

# The trainer and the program.
add_library(hvdrun_petrv2_trainer STATIC
            petrv2/trainer/batch_maker.cc petrv2/trainer/device.cc petrv2/trainer/last_word.cc
            petrv2/trainer/resume.cc petrv2/trainer/step_feed.cc petrv2/trainer/step_log.cc
            petrv2/trainer/step_runner.cc petrv2/trainer/step_spans.cc petrv2/trainer/stop_signals.cc
            petrv2/trainer/train_command.cc petrv2/trainer/train_options.cc petrv2/trainer/train_state.cc
            petrv2/trainer/trainer.cc)
add_library(hvdrun::petrv2_trainer ALIAS hvdrun_petrv2_trainer)
hvdrun_uses_torch(hvdrun_petrv2_trainer)
target_link_libraries(hvdrun_petrv2_trainer
  PUBLIC hvdrun::petrv2_model hvdrun::petrv2_data hvdrun::petrv2_optim hvdrun::progress
         hvdrun::runtime_static hvdrun::gradient_sync hvdrun_petrv2_agreement
  PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)
set_target_properties(hvdrun_petrv2_trainer PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
hvdrun_petrv2_compile_together(trainer petrv2/trainer/train_command.cc petrv2/trainer/trainer.cc
                               petrv2/trainer/train_state.cc petrv2/trainer/resume.cc
                               petrv2/trainer/step_log.cc)
hvdrun_petrv2_compile_together(step petrv2/trainer/step_runner.cc petrv2/trainer/batch_maker.cc
                               petrv2/trainer/step_feed.cc petrv2/trainer/device.cc
                               petrv2/trainer/step_spans.cc)

add_executable(petrv2 main.cc)
target_link_libraries(petrv2 PRIVATE hvdrun::flags hvdrun::petrv2_trainer hvdrun::petrv2_verify_commands
                      hvdrun::petrv2_synth)
target_compile_definitions(petrv2 PRIVATE HVDRUN_VERSION="${PROJECT_VERSION}")

# What a step takes on this machine, with and without the synchroniser: measured by hand.
add_executable(step_bench ${PROJECT_SOURCE_DIR}/tests/bench/step_bench.cc)
target_link_libraries(step_bench PRIVATE hvdrun::flags hvdrun::petrv2_trainer hvdrun::petrv2_verify)
hvdrun_uses_torch(step_bench)
set_target_properties(step_bench PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bench)
