# hvdrun_timeline: what becomes of the workers' timelines at the launcher: kept, put in order, merged.
add_library(hvdrun_timeline STATIC
  timeline/timeline_merge.cc timeline/timeline_spool.cc timeline/trace_index.cc)
target_link_libraries(hvdrun_timeline PUBLIC hvdrun::proto hvdrun::base
                      PRIVATE hvdrun::flags nlohmann_json::nlohmann_json)

hvdrun_test(timeline_merge_test LIBS hvdrun_timeline protobuf nlohmann_json::nlohmann_json
            SRCS timeline/timeline_merge_test.cc timeline/trace_index_test.cc)
