# Configuration, model and losses. Paths are relative to training/.
find_package(yaml-cpp REQUIRED)

set(config_names
    petrv2_vovnet_gridmask_p4_800x320 petrv2_vovnet_gridmask_p4_1600x640
    petrv2_vovnet_gridmask_p4_800x320_dn petrv2_r50_gridmask_p4_704x256_dn_flash_nuim
    petrv2_r50_gridmask_p4_1600x640_dn_flash_nuim petrv2_r101_gridmask_p4_1600x640_dn_flash_nuim
    petrv2_r50_p4_256x704 petrv2_r50_c5_256x704 petrv2_r18_p4_256x704 tiny)
set(HVDRUN_CONFIG_ENTRIES "")
foreach(config IN LISTS config_names)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/configs/${config}.yaml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} yaml)
  string(APPEND HVDRUN_CONFIG_ENTRIES "    {\"${config}\", R\"yaml(${yaml})yaml\"},\n")
endforeach()
configure_file(petrv2/model/builtin_configs.cc.in ${CMAKE_CURRENT_BINARY_DIR}/builtin_configs.cc @ONLY)

# What needs no torch.
add_library(hvdrun_petrv2_config STATIC petrv2/config.cc petrv2/recompute.cc petrv2/model/grid_mask.cc
            petrv2/loss/assignment.cc ${CMAKE_CURRENT_BINARY_DIR}/builtin_configs.cc)
add_library(hvdrun::petrv2_config ALIAS hvdrun_petrv2_config)
target_link_libraries(hvdrun_petrv2_config PUBLIC hvdrun::base PRIVATE hvdrun::flags yaml-cpp)
hvdrun_test(petrv2_config_test
            SRCS petrv2/config_test.cc petrv2/recompute_test.cc petrv2/model/grid_mask_test.cc petrv2/loss/assignment_test.cc
            LIBS hvdrun::petrv2_config)

add_library(hvdrun_petrv2_model STATIC
            petrv2/model/parameters.cc petrv2/model/checkpoint.cc petrv2/model/decode.cc
            petrv2/model/resnet.cc petrv2/model/vovnet.cc
            petrv2/model/position.cc petrv2/model/decoder.cc petrv2/model/denoising.cc
            petrv2/loss/matching_cost.cc petrv2/loss/losses.cc
            petrv2/model/head.cc petrv2/model/head_training.cc petrv2/model/petrv2.cc)
add_library(hvdrun::petrv2_model ALIAS hvdrun_petrv2_model)
hvdrun_uses_torch(hvdrun_petrv2_model)
target_link_libraries(hvdrun_petrv2_model PUBLIC hvdrun::petrv2_config hvdrun::asio
                      PRIVATE hvdrun::flags)

# A file with torch costs ten seconds and more, nearly all of it libtorch's headers: neighbours are
# compiled together.
set_target_properties(hvdrun_petrv2_model PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
function(hvdrun_petrv2_compile_together group)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
endfunction()
hvdrun_petrv2_compile_together(tensors petrv2/model/parameters.cc petrv2/model/checkpoint.cc
                               petrv2/model/decode.cc)
hvdrun_petrv2_compile_together(backbones petrv2/model/resnet.cc petrv2/model/vovnet.cc)
hvdrun_petrv2_compile_together(decoder petrv2/model/position.cc petrv2/model/decoder.cc
                               petrv2/model/denoising.cc)
hvdrun_petrv2_compile_together(losses petrv2/loss/matching_cost.cc petrv2/loss/losses.cc)
hvdrun_petrv2_compile_together(head petrv2/model/head.cc petrv2/model/head_training.cc
                               petrv2/model/petrv2.cc)
