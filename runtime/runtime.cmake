# The runtime for workers. hvdrun::meeting: how ranks find each other under any launcher, and are
# connected; hvdrun::runtime_static: all of it, for the tests and for programs that link its parts;
# hvdrun::runtime: libhvdrun.so, the one library that other programs link.
add_library(hvdrun_meeting STATIC
  folder_meeting.cc job_identity.cc launch_place.cc own_address.cc peer_store_edge.cc
  rank_connect.cc worker_rendezvous.cc)
add_library(hvdrun::meeting ALIAS hvdrun_meeting)
target_link_libraries(hvdrun_meeting
                      PUBLIC hvdrun::communicator hvdrun::proto hvdrun::rendezvous_link
                      PRIVATE hvdrun::flags hvdrun_services PkgConfig::GRPC protobuf)
# gRPC's generated services hide their own synchronous methods.
set_source_files_properties(peer_store_edge.cc PROPERTIES COMPILE_OPTIONS -Wno-overloaded-virtual)

add_library(hvdrun_runtime STATIC
  failure_path.cc gpu_connect.cc horovod_variables.cc nccl_variables.cc recorded_communicator.cc
  runtime.cc worker_facts.cc)
add_library(hvdrun::runtime_static ALIAS hvdrun_runtime)
target_compile_definitions(hvdrun_runtime PRIVATE HVDRUN_VERSION="${PROJECT_VERSION}")
target_link_libraries(hvdrun_runtime
                      PUBLIC hvdrun::meeting hvdrun::instruments hvdrun::worker_monitor
                      PRIVATE hvdrun::flags protobuf)
if(TARGET hvdrun_nccl_communicator)
  target_link_libraries(hvdrun_runtime PUBLIC hvdrun::nccl_communicator)
endif()
set_target_properties(hvdrun_meeting hvdrun_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)

# What it takes from elsewhere stays inside (library_symbols.map).
add_library(hvdrun_library SHARED c_api.cc)
add_library(hvdrun::runtime ALIAS hvdrun_library)
target_link_libraries(hvdrun_library PRIVATE hvdrun::flags hvdrun::runtime_static protobuf)
set_target_properties(hvdrun_library PROPERTIES
  OUTPUT_NAME hvdrun LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/library_symbols.map)
target_link_options(hvdrun_library PRIVATE
  "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/library_symbols.map")
target_link_libraries(hvdrun_library INTERFACE fmt::fmt-header-only)  # of base/status.h
target_include_directories(hvdrun_library INTERFACE
  ${CMAKE_CURRENT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR} ${TL_EXPECTED_INCLUDE})

foreach(name folder_meeting job_identity launch_place)
  hvdrun_test(${name}_test SRCS ${name}_test.cc LIBS hvdrun::meeting)
endforeach()
foreach(name failure_path horovod_variables nccl_variables recorded_communicator)
  hvdrun_test(${name}_test SRCS ${name}_test.cc LIBS hvdrun::runtime_static)
endforeach()
hvdrun_test(worker_facts_test SRCS worker_facts_test.cc LIBS hvdrun::runtime_static protobuf)
hvdrun_test(worker_rendezvous_test SRCS peer_store_edge_test.cc worker_rendezvous_test.cc
            LIBS hvdrun::meeting hvdrun_services PkgConfig::GRPC protobuf)
