// The labels of a sample: its annotations, which the tables give in the global frame, as boxes in
// the lidar frame of its key frame. fp64 throughout. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "training/petrv2/data/records.h"
#include "training/petrv2/synth/nuscenes_tables.h"

namespace hvd::petrv2 {

// Where the lidar is in the world at the moment of the sample's key frame, m.
[[nodiscard]] Matrix4 lidar_to_global(const NuscenesTables& tables, const NuscenesSample& sample);

// Velocity as the nuScenes devkit defines it: the way from the annotation before to the one after
// over the time between them, or from or to this one where a side is missing; NaN where both are,
// or where that time is not above 0 or is above 1.5 s per side. m/s, global frame, x and y.
[[nodiscard]] std::array<double, 2> global_velocity(const NuscenesTables& tables,
                                                    std::uint32_t annotation);

// All annotations of the sample, in table order; label -1 where the category is none of the ten.
// Heading: the direction of the box's length, projected on the lidar's x-y plane.
[[nodiscard]] std::vector<AnnotatedBox> boxes_in_lidar_frame(const NuscenesTables& tables,
                                                             const NuscenesSample& sample);

}  // namespace hvd::petrv2
