# hvdrun::formats: the file formats of the trainer, without torch.
set(formats_dir ${CMAKE_CURRENT_LIST_DIR})
set(formats_proto training/formats/event)
set(formats_generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${formats_generated})
add_custom_command(
  OUTPUT ${formats_generated}/${formats_proto}.pb.cc ${formats_generated}/${formats_proto}.pb.h
  COMMAND ${PROTOC} --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${formats_generated}
          ${formats_proto}.proto
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  DEPENDS ${PROJECT_SOURCE_DIR}/${formats_proto}.proto)
# Apart, so that our warnings do not apply to generated code.
add_library(hvdrun_event_messages STATIC ${formats_generated}/${formats_proto}.pb.cc)
target_include_directories(hvdrun_event_messages PUBLIC ${formats_generated})
target_link_libraries(hvdrun_event_messages PUBLIC protobuf)
set_target_properties(hvdrun_event_messages PROPERTIES POSITION_INDEPENDENT_CODE ON)

add_library(hvdrun_formats STATIC
  ${formats_dir}/atomic_file.cc ${formats_dir}/checkpoint_store.cc ${formats_dir}/crc32c.cc
  ${formats_dir}/disk_write.cc ${formats_dir}/event_writer.cc ${formats_dir}/mapped_file.cc
  ${formats_dir}/safetensors.cc ${formats_dir}/safetensors_header.cc ${formats_dir}/tfrecord.cc
  ${formats_dir}/tfrecord_index.cc)
add_library(hvdrun::formats ALIAS hvdrun_formats)
target_link_libraries(hvdrun_formats PUBLIC hvdrun::base
                      PRIVATE hvdrun::flags hvdrun_event_messages nlohmann_json::nlohmann_json)
set_target_properties(hvdrun_formats PROPERTIES POSITION_INDEPENDENT_CODE ON)

hvdrun_test(formats_test
  SRCS ${formats_dir}/checkpoint_store_test.cc ${formats_dir}/event_writer_test.cc
       ${formats_dir}/safetensors_test.cc ${formats_dir}/tfrecord_index_test.cc
       ${formats_dir}/tfrecord_test.cc
  LIBS hvdrun::formats)
add_test(NAME long_checkpoint_kills
         COMMAND formats_test --gtest_filter=CheckpointStore.AWriterKilled*)
set_tests_properties(long_checkpoint_kills PROPERTIES LABELS long TIMEOUT 600
                     ENVIRONMENT "HVDRUN_LONG=1")

# Against the packages of others, which scripts/venv.sh test brings.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(formats_python ${PROJECT_SOURCE_DIR}/.venv-test/bin/python)
if(NOT EXISTS ${formats_python})
  set(formats_python ${Python3_EXECUTABLE})
endif()
add_executable(formats_interchange ${formats_dir}/interchange_main.cc)
target_link_libraries(formats_interchange PRIVATE hvdrun::flags hvdrun::formats
                      nlohmann_json::nlohmann_json)
set_target_properties(formats_interchange PROPERTIES
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(package safetensors tensorboard)
  add_test(NAME formats_${package}
           COMMAND ${formats_python} ${formats_dir}/interchange_test.py
                   $<TARGET_FILE:formats_interchange> ${package})
  set_tests_properties(formats_${package} PROPERTIES LABELS training TIMEOUT 120
                       SKIP_RETURN_CODE 77)
endforeach()

# What the trainer tells while it runs.
set(progress_dir ${CMAKE_CURRENT_SOURCE_DIR}/petrv2)
add_library(hvdrun_progress STATIC ${progress_dir}/progress.cc ${progress_dir}/step_report.cc)
add_library(hvdrun::progress ALIAS hvdrun_progress)
target_link_libraries(hvdrun_progress PUBLIC hvdrun::formats
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)
set_target_properties(hvdrun_progress PROPERTIES POSITION_INDEPENDENT_CODE ON)
hvdrun_test(progress_test SRCS ${progress_dir}/progress_test.cc
            LIBS hvdrun::progress nlohmann_json::nlohmann_json)
