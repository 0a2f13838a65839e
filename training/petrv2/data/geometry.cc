#include "training/petrv2/data/geometry.h"

namespace hvd::petrv2 {

Matrix4 lidar_to_image(const Matrix3& intrinsic, const Matrix4& cam2global,
                       const Matrix4& lidar2global) {
  const Matrix4 lidar2cam = multiply(inverse(cam2global), lidar2global);
  return multiply(pad_to_4x4(intrinsic), lidar2cam);
}

double mean_time_delta(const std::array<std::int64_t, kNumCameras>& current_us,
                       const std::array<std::int64_t, kNumCameras>& previous_us) {
  std::int64_t sum_us = 0;
  for (std::size_t camera = 0; camera < current_us.size(); ++camera) {
    sum_us += current_us[camera] - previous_us[camera];
  }
  return static_cast<double>(sum_us) * 1e-6 / kNumCameras;
}

}  // namespace hvd::petrv2
