#include "training/petrv2/data/box_filter.h"

#include <algorithm>
#include <cmath>

#include "training/petrv2/data/augmentation.h"

namespace hvd::petrv2 {

bool is_training_box(const AnnotatedBox& annotated) {
  const Box& box = annotated.box;
  return annotated.num_lidar_pts + annotated.num_radar_pts > 0 && box.label >= 0 &&
         std::abs(box.center[0]) < kDetectionRange && std::abs(box.center[1]) < kDetectionRange;
}

std::uint32_t count_training_boxes(const SampleRecord& sample) {
  return static_cast<std::uint32_t>(
      std::count_if(sample.boxes.begin(), sample.boxes.end(), is_training_box));
}

std::vector<Box> training_boxes(const SampleRecord& sample) {
  std::vector<Box> boxes;
  for (const AnnotatedBox& annotated : sample.boxes) {
    if (!is_training_box(annotated)) continue;
    Box box = annotated.box;
    box.heading = wrap_angle(box.heading);
    for (double& v : box.velocity) v = std::isfinite(v) ? v : 0;
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace hvd::petrv2
