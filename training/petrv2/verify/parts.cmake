# petrv2 verify and petrv2 inspect. Paths are relative to training/.
add_library(hvdrun_petrv2_verify_options STATIC petrv2/verify/options.cc petrv2/verify/filler.cc)
target_link_libraries(hvdrun_petrv2_verify_options PUBLIC hvdrun::base PRIVATE hvdrun::flags)
hvdrun_test(petrv2_verify_options_test
            SRCS petrv2/verify/options_test.cc petrv2/verify/filler_test.cc
            LIBS hvdrun_petrv2_verify_options)

add_library(hvdrun_petrv2_verify STATIC petrv2/verify/scene.cc petrv2/verify/golden_small.cc
            petrv2/verify/golden_model.cc petrv2/verify/verify_run.cc)
add_library(hvdrun::petrv2_verify ALIAS hvdrun_petrv2_verify)
hvdrun_uses_torch(hvdrun_petrv2_verify)
target_link_libraries(hvdrun_petrv2_verify
                      PUBLIC hvdrun_petrv2_verify_options hvdrun::petrv2_model hvdrun::petrv2_optim
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)
set_target_properties(hvdrun_petrv2_verify PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
hvdrun_petrv2_compile_together(golden petrv2/verify/golden_small.cc petrv2/verify/golden_model.cc)
hvdrun_petrv2_compile_together(run petrv2/verify/scene.cc petrv2/verify/verify_run.cc)

# The subcommands themselves, without torch's headers.
add_library(hvdrun_petrv2_verify_commands STATIC petrv2/verify/verify.cc petrv2/verify/inspect.cc)
add_library(hvdrun::petrv2_verify_commands ALIAS hvdrun_petrv2_verify_commands)
target_link_libraries(hvdrun_petrv2_verify_commands
                      PUBLIC hvdrun::petrv2_verify hvdrun::petrv2_data
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

hvdrun_test(petrv2_golden_test SRCS petrv2/verify/golden_test.cc LIBS hvdrun::petrv2_verify
            LABEL training)
hvdrun_test(petrv2_model_test SRCS petrv2/model/head_test.cc petrv2/model/petrv2_test.cc
            LIBS hvdrun::petrv2_verify TORCH LABEL training)
