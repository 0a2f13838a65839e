# To an agent that serves, without what the other ways need: hvdctl has it, too.
add_library(hvdrun_tls_dial STATIC transport/name_lookup.cc transport/tls_dial.cc)
target_link_libraries(hvdrun_tls_dial PUBLIC hvdrun::base hvdrun::tls PRIVATE hvdrun::flags OpenSSL::SSL)

# The four ways to a node, behind one interface (transport/transport.h).
add_library(hvdrun_transport STATIC
  transport/agent_image.cc transport/agent_upload.cc transport/boot_dialogue.cc
  transport/boot_scanner.cc transport/boot_script.cc transport/child_process.cc
  transport/command_transport.cc transport/helper_process.cc transport/phase.cc
  transport/pump.cc transport/pump_link.cc transport/rsh_words.cc transport/ssh_auth.cc
  transport/ssh_config_scan.cc transport/ssh_dial.cc transport/ssh_host_key.cc transport/ssh_job.cc
  transport/ssh_keys.cc transport/ssh_login.cc transport/ssh_paths.cc transport/ssh_session.cc
  transport/ssh_transport.cc transport/tls_transport.cc transport/tls_words.cc)
add_library(hvdrun::transport ALIAS hvdrun_transport)
target_link_libraries(hvdrun_transport PUBLIC hvdrun::base hvdrun_tls_dial
                      PRIVATE hvdrun::flags PkgConfig::LIBSSH OpenSSL::SSL)
# g++ 12 takes the two halves of a coroutine frame's own allocation for strangers where it inlines one.
set_source_files_properties(transport/tls_transport.cc PROPERTIES COMPILE_OPTIONS -Wno-mismatched-new-delete)

hvdrun_test(transport_boot_test SRCS transport/boot_test.cc LIBS hvdrun::transport)
hvdrun_test(transport_ssh_test SRCS transport/ssh_test.cc LIBS hvdrun::transport LABEL root TIMEOUT 120)
