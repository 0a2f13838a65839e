# Every outside library as one imported target hvdrun::dep_NAME; nothing is downloaded here.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++)
pkg_check_modules(LIBSSH REQUIRED IMPORTED_TARGET libssh)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(yaml-cpp REQUIRED)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_path(TL_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)

add_library(hvdrun_asio INTERFACE)
add_library(hvdrun::asio ALIAS hvdrun_asio)
target_link_libraries(hvdrun_asio INTERFACE Boost::boost Threads::Threads)
target_compile_definitions(hvdrun_asio INTERFACE BOOST_ASIO_NO_DEPRECATED)

# Both programs take gRPC and protobuf from their archives: the agent because it needs nothing of its
# node, hvdrun because loading some 50 shared libraries was a quarter of a start's time. The agent is
# static altogether; what else hvdrun needs (libssh, OpenSSL) is shared. Tests and sanitizer builds
# link the shared ones.
if(HVDRUN_SANITIZE)
  set(HVDRUN_GRPC_FOR_AGENT PkgConfig::GRPC protobuf OpenSSL::SSL)
  set(HVDRUN_YAML_FOR_AGENT yaml-cpp)
  set(HVDRUN_GRPC_FOR_LAUNCHER PkgConfig::GRPC protobuf)
else()
  # The list that pkg-config gives for static linking; archives name each other, hence the group.
  set(grpc_static ${GRPC_STATIC_LIBRARIES})
  list(REMOVE_DUPLICATES grpc_static)
  add_library(hvdrun_grpc_static INTERFACE)
  target_link_libraries(hvdrun_grpc_static INTERFACE -Wl,--start-group ${grpc_static} protobuf
                        -Wl,--end-group)
  set(HVDRUN_GRPC_FOR_AGENT hvdrun_grpc_static)
  set(HVDRUN_YAML_FOR_AGENT -l:libyaml-cpp.a)
  set(grpc_archives ${grpc_static})
  list(FILTER grpc_archives INCLUDE REGEX "^(grpc|gpr|absl|address_sorting|re2|upb|cares)")
  add_library(hvdrun_grpc_archives INTERFACE)
  target_link_libraries(hvdrun_grpc_archives INTERFACE
    -Wl,-Bstatic -Wl,--start-group ${grpc_archives} protobuf -Wl,--end-group -Wl,-Bdynamic
    ssl crypto z ${CMAKE_DL_LIBS} Threads::Threads)
  set(HVDRUN_GRPC_FOR_LAUNCHER hvdrun_grpc_archives)
endif()
