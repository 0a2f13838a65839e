# hvdrun_petrv2_synth: nuScenes tables, their conversion to records, and a made-up data set. No torch.
set(synth_dir ${CMAKE_CURRENT_LIST_DIR})
add_library(hvdrun_petrv2_synth STATIC
  ${synth_dir}/canvas.cc ${synth_dir}/command_line.cc ${synth_dir}/commands.cc
  ${synth_dir}/convert.cc ${synth_dir}/keyframe_sweeps.cc ${synth_dir}/lidar_boxes.cc
  ${synth_dir}/nuscenes_tables.cc ${synth_dir}/rig.cc ${synth_dir}/scene_painter.cc
  ${synth_dir}/scene_records.cc ${synth_dir}/scene_split.cc ${synth_dir}/shots.cc
  ${synth_dir}/synth.cc ${synth_dir}/synth_images.cc ${synth_dir}/synth_tables.cc
  ${synth_dir}/table_reader.cc ${synth_dir}/token.cc ${synth_dir}/world.cc)
add_library(hvdrun::petrv2_synth ALIAS hvdrun_petrv2_synth)
# Whole rows of pixels: worth the compiler's vectors, which minimum and maximum keep away where every
# comparison must be able to trap.
set_source_files_properties(${synth_dir}/scene_painter.cc PROPERTIES
                            COMPILE_OPTIONS "-O3;-fno-trapping-math")
target_link_libraries(hvdrun_petrv2_synth
  PUBLIC hvdrun::base hvdrun::petrv2_data
  PRIVATE hvdrun::flags hvdrun::communicator hvdrun::formats nlohmann_json::nlohmann_json Threads::Threads)

hvdrun_test(petrv2_synth_test
  SRCS ${synth_dir}/canvas_test.cc ${synth_dir}/command_line_test.cc ${synth_dir}/convert_test.cc
       ${synth_dir}/keyframe_sweeps_test.cc ${synth_dir}/lidar_boxes_test.cc
       ${synth_dir}/nuscenes_tables_test.cc ${synth_dir}/round_trip_test.cc
       ${synth_dir}/scene_split_test.cc ${synth_dir}/world_test.cc
  LIBS hvdrun::petrv2_synth nlohmann_json::nlohmann_json)
