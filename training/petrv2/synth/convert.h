// nuScenes v1.0 to TFRecord: reads the tables, then writes scene by scene its step records (six
// JPEG files as they are, with their cameras) and its sample records (boxes, candidate steps).
//
// The shards are written to a folder of their own below the target and moved when all are complete
// and on the disk, the indexes last: whatever interrupts it, no set there looks complete that is
// not. Thread: one; another process must not convert the same split to the same folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace hvd::petrv2 {

struct ConvertRequest {
  std::string dataroot;
  std::string version;                    // folder of the tables below the data root
  std::string split = "all";              // as scene_split.h
  std::string out;                        // folder; made if need be
  std::optional<std::size_t> num_shards;  // nullopt: one for every seven scenes
};

struct ConvertReport {
  std::string split;
  std::size_t num_shards = 0;
  std::size_t num_scenes = 0;
  std::size_t num_samples = 0;
  std::size_t num_steps = 0;
  std::size_t num_boxes = 0;        // all annotations
  std::size_t num_class_boxes = 0;  // those of the ten classes
  std::uint64_t image_bytes = 0;
};

// Called after every scene with how many are done, of how many.
using ConvertProgress = std::function<void(std::size_t done, std::size_t total)>;

[[nodiscard]] Result<ConvertReport> convert(const ConvertRequest& request,
                                            const ConvertProgress& progress);

}  // namespace hvd::petrv2
