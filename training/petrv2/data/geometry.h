// From records to projections and times: the chain of frames that puts every one of the twelve
// views, the previous ones too, into the current lidar frame. Pure, any thread.
#pragma once

#include <array>
#include <cstdint>

#include "training/petrv2/data/sample.h"

namespace hvd::petrv2 {

// K4 inverse(T[G<-C]) T[G<-L]: lidar metres to (u d, v d, d, 1) with u, v in px and depth d in
// metres. The camera may have been taken at any time: the global frame G lies between.
[[nodiscard]] Matrix4 lidar_to_image(const Matrix3& intrinsic, const Matrix4& cam2global,
                                     const Matrix4& lidar2global);

// Mean over the cameras of current - previous, s. The difference is taken in whole microseconds:
// absolute times are 1.5e15 us.
[[nodiscard]] double mean_time_delta(const std::array<std::int64_t, kNumCameras>& current_us,
                                     const std::array<std::int64_t, kNumCameras>& previous_us);

}  // namespace hvd::petrv2
