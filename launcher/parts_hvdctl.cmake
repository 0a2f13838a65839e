# hvdctl: the administrator's program. No gRPC, no libssh.
add_library(hvdrun_hvdctl STATIC
  hvdctl/authority.cc hvdctl/ca_command.cc hvdctl/certificate.cc
  hvdctl/control_answer.cc hvdctl/control_call.cc hvdctl/control_command.cc hvdctl/control_jobs.cc
  hvdctl/control_options.cc hvdctl/control_text.cc)
target_link_libraries(hvdrun_hvdctl
  PUBLIC hvdrun_certificate_names hvdrun_options hvdrun_tls_dial
  PRIVATE hvdrun::flags nlohmann_json::nlohmann_json OpenSSL::SSL OpenSSL::Crypto)

add_executable(hvdctl hvdctl/main.cc)
target_link_libraries(hvdctl PRIVATE hvdrun_hvdctl hvdrun::flags)
target_link_options(hvdctl PRIVATE -Wl,--gc-sections $<$<NOT:$<CONFIG:Debug>>:-s>)
target_compile_definitions(hvdctl PRIVATE HVDRUN_VERSION="${PROJECT_VERSION}")

hvdrun_test(hvdctl_test LIBS hvdrun_hvdctl
  SRCS hvdctl/ca_command_test.cc hvdctl/control_command_test.cc hvdctl/control_text_test.cc)
