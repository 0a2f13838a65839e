# hvdrun_petrv2_data: records, images, augmentation, sampler, loader. No torch.
find_library(TURBOJPEG_LIBRARY turbojpeg REQUIRED)
find_path(TURBOJPEG_INCLUDE turbojpeg.h REQUIRED)

set(data_dir ${CMAKE_CURRENT_LIST_DIR})
set(example_stem training/petrv2/data/example)
set(example_out ${PROJECT_BINARY_DIR}/generated/${example_stem}.pb)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${example_out}.cc ${example_out}.h
  COMMAND ${PROTOC} --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${PROJECT_BINARY_DIR}/generated
          ${example_stem}.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/${example_stem}.proto)

# Generated code is not held to the house's warnings.
add_library(hvdrun_petrv2_example STATIC ${example_out}.cc)
target_include_directories(hvdrun_petrv2_example PUBLIC ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(hvdrun_petrv2_example PUBLIC protobuf)

add_library(hvdrun_petrv2_data STATIC
  ${data_dir}/augmentation.cc ${data_dir}/box_filter.cc ${data_dir}/example_fields.cc
  ${data_dir}/geometry.cc ${data_dir}/image_resize.cc ${data_dir}/inspect_records.cc
  ${data_dir}/jpeg.cc ${data_dir}/loader.cc ${data_dir}/matrix4.cc ${data_dir}/previous_frame.cc
  ${data_dir}/record_set.cc ${data_dir}/record_set_writer.cc ${data_dir}/records.cc
  ${data_dir}/records_decode.cc ${data_dir}/sample_reader.cc ${data_dir}/sampler.cc)
add_library(hvdrun::petrv2_data ALIAS hvdrun_petrv2_data)
target_include_directories(hvdrun_petrv2_data PRIVATE ${TURBOJPEG_INCLUDE})
target_link_libraries(hvdrun_petrv2_data
  PUBLIC hvdrun::base hvdrun::formats
  PRIVATE hvdrun::flags hvdrun_petrv2_example ${TURBOJPEG_LIBRARY} nlohmann_json::nlohmann_json)
# Whole rows of pixels: worth the compiler's vectors.
set_source_files_properties(${data_dir}/image_resize.cc PROPERTIES COMPILE_OPTIONS -O3)

hvdrun_test(petrv2_geometry_test
  SRCS ${data_dir}/augmentation_test.cc ${data_dir}/counter_rng_test.cc ${data_dir}/matrix4_test.cc
       ${data_dir}/sampler_test.cc ${data_dir}/selection_test.cc
  LIBS hvdrun::petrv2_data)
hvdrun_test(petrv2_records_test
  SRCS ${data_dir}/image_test.cc ${data_dir}/record_set_test.cc ${data_dir}/records_test.cc
  LIBS hvdrun::petrv2_data hvdrun_petrv2_example)
hvdrun_test(petrv2_loader_test SRCS ${data_dir}/loader_test.cc LIBS hvdrun::petrv2_data)
