#include "training/petrv2/synth/lidar_boxes.h"

#include <cmath>
#include <limits>

namespace hvd::petrv2 {
namespace {

constexpr double kLongestTimePerSide = 1.5;  // s

// The direction m turns `direction` to; its translation does not count.
Vector3 rotate(const Matrix4& m, const Vector3& direction) {
  Matrix4 rotation = m;
  rotation[3] = rotation[7] = rotation[11] = 0;
  return transform_point(rotation, direction);
}

AnnotatedBox to_lidar(const NuscenesTables& tables, std::uint32_t index,
                      const Matrix4& global2lidar) {
  const Annotation& annotation = tables.annotations[index];
  const Matrix4 box2lidar =
      multiply(global2lidar, rigid_transform(annotation.rotation, annotation.center));
  const Vector3 length = rotate(box2lidar, {1, 0, 0});
  const auto [vx, vy] = global_velocity(tables, index);
  const Vector3 velocity = rotate(global2lidar, {vx, vy, 0});
  AnnotatedBox result;
  result.box = {.center = transform_point(box2lidar, {0, 0, 0}),
                .size = annotation.size,
                .heading = std::atan2(length[1], length[0]),
                .velocity = {velocity[0], velocity[1]},
                .label = annotation.label};
  result.num_lidar_pts = annotation.num_lidar_pts;
  result.num_radar_pts = annotation.num_radar_pts;
  result.instance = annotation.instance.text();
  return result;
}

}  // namespace

Matrix4 lidar_to_global(const NuscenesTables& tables, const NuscenesSample& sample) {
  return multiply(sample.lidar->ego2global,
                  tables.calibrations[sample.lidar->calibration].sensor2ego);
}

std::array<double, 2> global_velocity(const NuscenesTables& tables, std::uint32_t annotation) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const Annotation& now = tables.annotations[annotation];
  const Annotation& first = tables.annotations[now.prev.value_or(annotation)];
  const Annotation& last = tables.annotations[now.next.value_or(annotation)];
  const double time = 1e-6 * static_cast<double>(tables.samples[last.sample].timestamp_us -
                                                 tables.samples[first.sample].timestamp_us);
  const int num_sides = (now.prev ? 1 : 0) + (now.next ? 1 : 0);
  if (!(time > 0) || time > num_sides * kLongestTimePerSide) return {kUnknown, kUnknown};
  return {(last.center[0] - first.center[0]) / time, (last.center[1] - first.center[1]) / time};
}

std::vector<AnnotatedBox> boxes_in_lidar_frame(const NuscenesTables& tables,
                                               const NuscenesSample& sample) {
  const Matrix4 global2lidar = inverse_rigid(lidar_to_global(tables, sample));
  std::vector<AnnotatedBox> boxes;
  boxes.reserve(sample.annotations.size());
  for (const std::uint32_t index : sample.annotations) {
    boxes.push_back(to_lidar(tables, index, global2lidar));
  }
  return boxes;
}

}  // namespace hvd::petrv2
