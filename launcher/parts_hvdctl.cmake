# hvdctl: the administrator's program.
add_library(hvdrun_hvdctl STATIC hvdctl/authority.cc hvdctl/ca_command.cc hvdctl/certificate.cc)
target_link_libraries(hvdrun_hvdctl PUBLIC hvdrun_certificate_names PRIVATE hvdrun::flags OpenSSL::Crypto)

add_executable(hvdctl hvdctl/main.cc)
target_link_libraries(hvdctl PRIVATE hvdrun_hvdctl hvdrun::flags)
target_compile_definitions(hvdctl PRIVATE HVDRUN_VERSION="${PROJECT_VERSION}")

hvdrun_test(hvdctl_test SRCS hvdctl/ca_command_test.cc LIBS hvdrun_hvdctl)
