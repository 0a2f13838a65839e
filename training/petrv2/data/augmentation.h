// Augmentation of a sample: of its images (resize, bottom crop, flip; one draw for all twelve) and
// of the bird's-eye view (rotation about the lidar's z axis, scale). Drawing takes a generator;
// what a draw does to matrices and boxes is a pure function of the draw. Any thread.
//
// Images and boxes are never out of step: the projections carry both, so a box corner falls on the
// same pixel before and after.
#pragma once

#include <array>
#include <vector>

#include "training/petrv2/data/counter_rng.h"
#include "training/petrv2/data/sample.h"

namespace hvd::petrv2 {

// The image size that resize ranges refer to is 1600 px wide (nuScenes). Images of another width
// are first thought of as scaled to it.
inline constexpr double kReferenceWidth = 1600;

struct AugmentationOptions {
  std::array<double, 2> resize_range{0.386, 0.55};  // of an image 1600 px wide
  double flip_probability = 0.5;
  std::array<double, 2> rotation_range{-0.3925, 0.3925};  // rad
  std::array<double, 2> scale_range{0.95, 1.05};
};

// Source (height, width) -> resized -> crop [top, top + height) x [left, left + width) -> flip.
// What the crop takes from outside the resized image is black.
struct ImageTransform {
  int height = 0;  // px, of the result
  int width = 0;
  double resize = 1;  // the drawn number: what the matrix holds
  int resized_height = 0;
  int resized_width = 0;
  int top = 0;
  int left = 0;
  bool is_flipped = false;
};

// source_*: px. The crop is at the bottom, so that the sky goes, and anywhere from left to right.
[[nodiscard]] ImageTransform draw_image_transform(const AugmentationOptions& options, int height,
                                                  int width, int source_height, int source_width,
                                                  CounterRng& rng);

// The transform of evaluation: the smallest resize that fills the crop, centred, not flipped.
[[nodiscard]] ImageTransform fixed_image_transform(int height, int width, int source_height,
                                                   int source_width);

// 3x3, source px to result px, to be put before the intrinsics. A flip is u' = width - u.
[[nodiscard]] Matrix3 image_matrix(const ImageTransform& transform);

struct BevTransform {
  double angle = 0;  // rad, counter-clockwise about z
  double scale = 1;
};

[[nodiscard]] BevTransform draw_bev_transform(const AugmentationOptions& options, CounterRng& rng);

// lidar2img inverse(Rz) inverse(diag(s, s, s, 1)).
[[nodiscard]] Matrix4 transform_projection(const Matrix4& lidar2img, const BevTransform& bev);

// Centre, size, heading (wrapped to [-pi, pi)) and velocity.
[[nodiscard]] Box transform_box(const Box& box, const BevTransform& bev);

// angle - 2 pi k, in [-pi, pi).
[[nodiscard]] double wrap_angle(double angle);

}  // namespace hvd::petrv2
