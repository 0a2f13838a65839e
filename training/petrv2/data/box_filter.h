// Which annotated boxes are trained on. Pure, any thread; runs before any augmentation, so the
// number of boxes is known from the records alone.
#pragma once

#include <cstdint>
#include <vector>

#include "training/petrv2/data/records.h"

namespace hvd::petrv2 {

// |x| and |y| of a centre must be smaller, m, lidar frame.
inline constexpr double kDetectionRange = 51.2;

// Seen by a sensor (a lidar or radar point), centre in range (z does not matter), one of ten
// classes.
[[nodiscard]] bool is_training_box(const AnnotatedBox& box);

[[nodiscard]] std::uint32_t count_training_boxes(const SampleRecord& sample);

// Heading in [-pi, pi); an unknown velocity is 0.
[[nodiscard]] std::vector<Box> training_boxes(const SampleRecord& sample);

}  // namespace hvd::petrv2
