#include "training/petrv2/data/augmentation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hvd::petrv2 {
namespace {

// Whole pixels of a resized side. The small addition keeps 704 where 1600 * (704 / 1600) is a
// rounding below it; a drawn factor never notices.
int resized_side(int source, double resize) {
  return std::max(1, static_cast<int>(source * resize + 1e-9));
}

// Sizes and the bottom crop; the rest is the caller's.
ImageTransform resized(double resize, int height, int width, int source_height, int source_width) {
  ImageTransform transform;
  transform.height = height;
  transform.width = width;
  transform.resize = resize;
  transform.resized_height = resized_side(source_height, resize);
  transform.resized_width = resized_side(source_width, resize);
  transform.top = transform.resized_height - height;
  return transform;
}

}  // namespace

ImageTransform draw_image_transform(const AugmentationOptions& options, int height, int width,
                                    int source_height, int source_width, CounterRng& rng) {
  const double drawn = rng.uniform(options.resize_range[0], options.resize_range[1]);
  const double resize = drawn * (kReferenceWidth / source_width);
  ImageTransform transform = resized(resize, height, width, source_height, source_width);
  const int slack = std::max(0, transform.resized_width - width);
  transform.left = static_cast<int>(rng.uniform(0, slack));
  transform.is_flipped = rng.uniform() < options.flip_probability;
  return transform;
}

ImageTransform fixed_image_transform(int height, int width, int source_height, int source_width) {
  const double resize = std::max(static_cast<double>(height) / source_height,
                                 static_cast<double>(width) / source_width);
  ImageTransform transform = resized(resize, height, width, source_height, source_width);
  transform.left = std::max(0, transform.resized_width - width) / 2;
  return transform;
}

Matrix3 image_matrix(const ImageTransform& t) {
  const Matrix3 crop = {
      t.resize, 0, -static_cast<double>(t.left), 0, t.resize, -static_cast<double>(t.top), 0, 0, 1};
  if (!t.is_flipped) return crop;
  const Matrix3 flip = {-1, 0, static_cast<double>(t.width), 0, 1, 0, 0, 0, 1};
  return multiply(flip, crop);
}

BevTransform draw_bev_transform(const AugmentationOptions& options, CounterRng& rng) {
  BevTransform bev;
  bev.angle = rng.uniform(options.rotation_range[0], options.rotation_range[1]);
  bev.scale = rng.uniform(options.scale_range[0], options.scale_range[1]);
  return bev;
}

Matrix4 transform_projection(const Matrix4& lidar2img, const BevTransform& bev) {
  const double c = std::cos(bev.angle);
  const double s = std::sin(bev.angle);
  const double k = 1 / bev.scale;
  // inverse(Rz) inverse(diag(s, s, s, 1)); the scale commutes with the rotation.
  const Matrix4 undo = {c * k, s * k, 0, 0, -s * k, c * k, 0, 0, 0, 0, k, 0, 0, 0, 0, 1};
  return multiply(lidar2img, undo);
}

Box transform_box(const Box& box, const BevTransform& bev) {
  const double c = std::cos(bev.angle) * bev.scale;
  const double s = std::sin(bev.angle) * bev.scale;
  Box moved = box;
  moved.center = {c * box.center[0] - s * box.center[1], s * box.center[0] + c * box.center[1],
                  bev.scale * box.center[2]};
  for (double& length : moved.size) length *= bev.scale;
  moved.heading = wrap_angle(box.heading + bev.angle);
  moved.velocity = {c * box.velocity[0] - s * box.velocity[1],
                    s * box.velocity[0] + c * box.velocity[1]};
  return moved;
}

double wrap_angle(double angle) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const double wrapped = angle - kTurn * std::floor((angle + std::numbers::pi) / kTurn);
  return wrapped < std::numbers::pi ? wrapped : wrapped - kTurn;  // rounding may reach +pi
}

}  // namespace hvd::petrv2
