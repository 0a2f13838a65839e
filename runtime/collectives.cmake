# Collective operations for workers: the interface, the arithmetic and the TCP backend; no torch, no gRPC.
find_package(OpenSSL REQUIRED COMPONENTS Crypto)

add_library(hvdrun_communicator STATIC
  communicator.cc descriptor_limits.cc host_lookup.cc reduction.cc tcp_blame.cc tcp_communicator.cc
  tcp_connect.cc tcp_handshake.cc tcp_mesh.cc tcp_operation.cc tcp_place.cc tcp_rendezvous.cc
  tcp_ring.cc tcp_socket.cc)
add_library(hvdrun::communicator ALIAS hvdrun_communicator)
target_link_libraries(hvdrun_communicator PUBLIC hvdrun::base PRIVATE hvdrun::flags OpenSSL::Crypto)
target_include_directories(hvdrun_communicator PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
# The loops over elements; the rest waits for the kernel.
set_source_files_properties(reduction.cc PROPERTIES COMPILE_OPTIONS -O3)

set_target_properties(hvdrun_communicator PROPERTIES POSITION_INDEPENDENT_CODE ON)

hvdrun_test(reduction_test SRCS reduction_test.cc LIBS hvdrun::communicator)
hvdrun_test(poll_until_test SRCS poll_until_test.cc LIBS hvdrun::base)
hvdrun_test(descriptor_limits_test SRCS descriptor_limits_test.cc LIBS hvdrun::communicator)
hvdrun_test(tcp_blame_test SRCS tcp_blame_test.cc LIBS hvdrun::communicator)
hvdrun_test(tcp_connect_test SRCS tcp_connect_test.cc LIBS hvdrun::communicator)
hvdrun_test(tcp_communicator_test SRCS tcp_communicator_test.cc LIBS hvdrun::communicator)
hvdrun_test(tcp_place_test SRCS tcp_place_test.cc LIBS hvdrun::communicator)
hvdrun_test(tcp_failure_test SRCS tcp_failure_test.cc LIBS hvdrun::communicator)
