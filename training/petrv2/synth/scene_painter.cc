#include "training/petrv2/synth/scene_painter.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hvd::petrv2 {
namespace {

constexpr double kNearPlane = 0.2;  // m

// A face of the box from -1 to 1 on each axis: x along the length to the front, y left, z up.
struct Face {
  int axis;     // 0 x, 1 y, 2 z
  double side;  // -1 or 1
  double x_low;
  double x_high;  // of the other two axes the whole side; for axis 0 both are `side`
  double brightness;
};
constexpr double kFrontPart = 0.5;  // the front quarter begins here
constexpr std::array<Face, 10> kFaces = {{{0, 1, 1, 1, 1.0},
                                          {0, -1, -1, -1, 0.45},
                                          {1, 1, -1, kFrontPart, 0.70},
                                          {1, 1, kFrontPart, 1, 0.92},
                                          {1, -1, -1, kFrontPart, 0.70},
                                          {1, -1, kFrontPart, 1, 0.92},
                                          {2, 1, -1, kFrontPart, 0.82},
                                          {2, 1, kFrontPart, 1, 0.97},
                                          {2, -1, -1, kFrontPart, 0.40},
                                          {2, -1, kFrontPart, 1, 0.40}}};

using Quad = std::array<Vector3, 4>;

Quad corners_of(const Face& face) {
  const double s = face.side;
  switch (face.axis) {
    case 0:
      return {{{s, -1, -1}, {s, 1, -1}, {s, 1, 1}, {s, -1, 1}}};
    case 1:
      return {{{face.x_low, s, -1}, {face.x_high, s, -1}, {face.x_high, s, 1}, {face.x_low, s, 1}}};
    default:
      return {{{face.x_low, -1, s}, {face.x_high, -1, s}, {face.x_high, 1, s}, {face.x_low, 1, s}}};
  }
}

// Cuts away what is nearer than the near plane. Camera coordinates, z ahead.
std::vector<Vector3> clip_near(const std::vector<Vector3>& polygon) {
  std::vector<Vector3> kept;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Vector3& a = polygon[i];
    const Vector3& b = polygon[(i + 1) % polygon.size()];
    if (a[2] >= kNearPlane) kept.push_back(a);
    if ((a[2] >= kNearPlane) == (b[2] >= kNearPlane)) continue;
    const double part = (kNearPlane - a[2]) / (b[2] - a[2]);
    kept.push_back({a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]), kNearPlane});
  }
  return kept;
}

// The plane through `point` with this normal, both in camera coordinates.
InverseDepth plane_depth(const Vector3& normal, const Vector3& point, const Matrix3& intrinsic) {
  const double distance = normal[0] * point[0] + normal[1] * point[1] + normal[2] * point[2];
  const double u_slope = normal[0] / (intrinsic[0] * distance);
  const double v_slope = normal[1] / (intrinsic[4] * distance);
  return {u_slope, v_slope, normal[2] / distance - u_slope * intrinsic[2] - v_slope * intrinsic[5]};
}

Colour shade(const Colour& colour, double brightness) {
  Colour shaded;
  for (std::size_t i = 0; i < colour.size(); ++i) {
    shaded[i] = static_cast<std::uint8_t>(std::lround(colour[i] * brightness));
  }
  return shaded;
}

class BoxPainter {
 public:
  BoxPainter(const CameraView& view, Canvas& canvas)
      : intrinsic_(view.intrinsic),
        global2camera_(inverse_rigid(view.camera2global)),
        canvas_(canvas) {}

  // Pixels of the box inside the image, hidden or not.
  std::int64_t paint(const WorldObject& object, double time, std::uint16_t owner) {
    const Vector3 center = object.center_at(time);
    const Matrix4 box2camera =
        multiply(global2camera_, rigid_transform(turn_about_z(object.heading), center));
    const Vector3 half = {object.size[1] / 2, object.size[0] / 2, object.size[2] / 2};
    const Vector3 eye = transform_point(inverse_rigid(box2camera), {0, 0, 0});
    std::int64_t num_pixels = 0;
    for (const Face& face : kFaces) {
      const auto axis = static_cast<std::size_t>(face.axis);
      if (eye[axis] * face.side <= half[axis]) continue;  // seen from behind
      const double brightness = face.brightness * object.brightness * fade(box2camera[11]);
      num_pixels +=
          paint_face(face, box2camera, half, shade(class_colour(object.label), brightness), owner);
    }
    return num_pixels;
  }

 private:
  // Haze, without its colour.
  static double fade(double depth) { return 1 / (1 + std::max(0.0, depth) / 150); }

  std::int64_t paint_face(const Face& face, const Matrix4& box2camera, const Vector3& half,
                          const Colour& colour, std::uint16_t owner) {
    std::vector<Vector3> polygon;
    for (const Vector3& corner : corners_of(face)) {
      polygon.push_back(transform_point(
          box2camera, {corner[0] * half[0], corner[1] * half[1], corner[2] * half[2]}));
    }
    const auto axis = static_cast<std::size_t>(face.axis);
    const Vector3 normal = {box2camera[axis], box2camera[4 + axis], box2camera[8 + axis]};
    const InverseDepth depth = plane_depth(normal, polygon[0], intrinsic_);
    std::vector<ImagePoint> outline;
    for (const auto& [x, y, z] : clip_near(polygon)) {
      outline.push_back(
          {intrinsic_[0] * x / z + intrinsic_[2], intrinsic_[4] * y / z + intrinsic_[5]});
    }
    return canvas_.fill(outline, depth, colour, owner);
  }

  const Matrix3& intrinsic_;
  const Matrix4 global2camera_;
  Canvas& canvas_;
};

// The direction, in the global frame, of what is seen at (u, v); of length 1 along the optical
// axis.
Vector3 direction_at(const CameraView& view, double u, double v) {
  const Matrix4& m = view.camera2global;
  const double x = (u - view.intrinsic[2]) / view.intrinsic[0];
  const double y = (v - view.intrinsic[5]) / view.intrinsic[4];
  return {m[0] * x + m[1] * y + m[2], m[4] * x + m[5] * y + m[6], m[8] * x + m[9] * y + m[10]};
}

Colour sky_at(double rise) {
  const double height = std::clamp(rise * 3, 0.0, 1.0);
  return {static_cast<std::uint8_t>(205 - 50 * height),
          static_cast<std::uint8_t>(212 - 32 * height),
          static_cast<std::uint8_t>(222 - 10 * height)};
}

// A slope this close to level is sky: its ground is more than a kilometre away.
constexpr float kHorizon = 1e-3F;

// The ground as a row of pixels sees it: grey tiles whose contrast is lost with distance, before
// they get finer than the pixels. `eye` is above the origin's tile; the ray of pixel u is ray + u
// step. In fp32 and without branches, which the compiler makes vectors of.
void shade_ground(std::array<float, 3> eye, std::array<float, 3> ray, std::array<float, 3> step,
                  std::vector<std::uint8_t>& greys) {
  constexpr float kTilesPerMetre = 0.25F;
  constexpr float kFarAway = 1 << 14;   // tiles; even, and keeps the numbers positive
  constexpr float kContrastReach = 15;  // m
  std::uint8_t* const grey = greys.data();
  const int width = static_cast<int>(greys.size());
  for (int u = 0; u < width; ++u) {
    const auto column = static_cast<float>(u);
    const float fall = std::max(kHorizon, -(ray[2] + column * step[2]));
    const float distance = eye[2] / fall;
    const float x = eye[0] + distance * (ray[0] + column * step[0]);
    const float y = eye[1] + distance * (ray[1] + column * step[1]);
    const int tile = static_cast<int>(x * kTilesPerMetre + kFarAway) +
                     static_cast<int>(y * kTilesPerMetre + kFarAway);
    const float contrast = 12 * std::min(1.0F, kContrastReach / distance);
    const auto sign = static_cast<float>(1 - 2 * (tile & 1));
    grey[u] = static_cast<std::uint8_t>(static_cast<int>(100 + sign * contrast));
  }
}

// Within the eight metres after which the tiles repeat.
float within_tiles(double position) {
  constexpr double kPeriod = 8;
  return static_cast<float>(position - kPeriod * std::floor(position / kPeriod));
}

std::array<float, 3> to_float(const Vector3& v) {
  return {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])};
}

void paint_background(const CameraView& view, Canvas& canvas) {
  const Matrix4& place = view.camera2global;
  const std::array<float, 3> eye = {within_tiles(place[3]), within_tiles(place[7]),
                                    static_cast<float>(place[11])};
  const int width = canvas.image().width;
  std::vector<std::uint8_t> greys(static_cast<std::size_t>(width));
  for (int v = 0; v < canvas.image().height; ++v) {
    const Vector3 first = direction_at(view, 0.5, v + 0.5);
    const Vector3 second = direction_at(view, 1.5, v + 0.5);
    const auto ray = to_float(first);
    const auto step = to_float({second[0] - first[0], second[1] - first[1], second[2] - first[2]});
    shade_ground(eye, ray, step, greys);
    const Colour sky = sky_at(direction_at(view, width / 2.0, v + 0.5)[2]);
    std::uint8_t* pixel = canvas.row(v);
    for (std::size_t u = 0; u < greys.size(); ++u, pixel += 3) {
      const bool is_ground = ray[2] + static_cast<float>(u) * step[2] < -kHorizon;
      pixel[0] = is_ground ? greys[u] : sky[0];
      pixel[1] = is_ground ? greys[u] : sky[1];
      pixel[2] = is_ground ? greys[u] : sky[2];
    }
  }
}

}  // namespace

Colour class_colour(int label) {
  static constexpr std::array<Colour, kClassNames.size()> kColours = {{{235, 35, 35},
                                                                       {240, 135, 20},
                                                                       {235, 215, 25},
                                                                       {125, 220, 25},
                                                                       {25, 180, 55},
                                                                       {25, 200, 185},
                                                                       {35, 120, 240},
                                                                       {70, 45, 235},
                                                                       {165, 35, 220},
                                                                       {240, 45, 150}}};
  return kColours[static_cast<std::size_t>(label)];
}

std::vector<Coverage> paint_scene(const WorldScene& scene, double time, const CameraView& view,
                                  Canvas& canvas) {
  canvas.clear();
  paint_background(view, canvas);
  std::vector<Coverage> coverage(scene.objects.size());
  BoxPainter painter(view, canvas);
  for (std::size_t i = 0; i < coverage.size(); ++i) {
    coverage[i].total = painter.paint(scene.objects[i], time, static_cast<std::uint16_t>(i));
  }
  for (const std::uint16_t owner : canvas.owners()) {
    if (owner != Canvas::kNobody) ++coverage[owner].visible;
  }
  return coverage;
}

}  // namespace hvd::petrv2
