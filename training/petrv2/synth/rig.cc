#include "training/petrv2/synth/rig.h"

#include <cmath>
#include <numbers>

namespace hvd::petrv2 {
namespace {

constexpr double kRadians = std::numbers::pi / 180;

// Lens in px of a 1600 x 900 image; yaw counter-clockwise from straight ahead.
struct CameraPlace {
  double yaw;  // degrees
  Vector3 translation;
  double focal_length;
  double center_u;
  double center_v;
};
constexpr std::array<CameraPlace, kNumCameras> kPlaces = {
    {{0, {1.70, 0.00, 1.51}, 1260, 812, 488},
     {-55, {1.55, -0.49, 1.50}, 1260, 806, 490},
     {55, {1.52, 0.49, 1.51}, 1260, 820, 480},
     {180, {0.03, 0.00, 1.58}, 810, 824, 482},
     {108, {1.04, 0.48, 1.59}, 1256, 792, 492},
     {-110, {1.01, -0.48, 1.56}, 1258, 804, 498}}};
constexpr double kNominalWidth = 1600;
constexpr double kNominalHeight = 900;
// x right, y down, z ahead, for a camera that looks along the ego's x axis.
constexpr Quaternion kOptical = {0.5, -0.5, 0.5, -0.5};

// First b, then a.
Quaternion compose(const Quaternion& a, const Quaternion& b) {
  return {
      a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
      a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

Quaternion slight_turn(CounterRng& rng) {
  constexpr double kLargest = 0.6 * kRadians / 2;  // half angles
  const Quaternion turn{1, rng.uniform(-kLargest, kLargest), rng.uniform(-kLargest, kLargest),
                        rng.uniform(-kLargest, kLargest)};
  const double length = std::hypot(std::hypot(turn.w, turn.x), std::hypot(turn.y, turn.z));
  return {turn.w / length, turn.x / length, turn.y / length, turn.z / length};
}

Camera make_camera(const CameraPlace& place, const ImageSize& size, CounterRng& rng) {
  const double scale_u = size.width / kNominalWidth;
  const double scale_v = size.height / kNominalHeight;
  Camera camera;
  camera.mount.translation = place.translation;
  camera.mount.rotation =
      compose(compose(turn_about_z(place.yaw * kRadians), kOptical), slight_turn(rng));
  camera.intrinsic = {place.focal_length * scale_u,
                      0,
                      place.center_u * scale_u,
                      0,
                      place.focal_length * scale_v,
                      place.center_v * scale_v,
                      0,
                      0,
                      1};
  return camera;
}

}  // namespace

CameraRig make_camera_rig(const ImageSize& size, CounterRng& rng) {
  CameraRig rig;
  for (std::size_t i = 0; i < rig.size(); ++i) rig[i] = make_camera(kPlaces[i], size, rng);
  return rig;
}

Mount lidar_mount() { return {{0.94, 0.0, 1.84}, turn_about_z(-std::numbers::pi / 2)}; }

Quaternion turn_about_z(double angle) { return {std::cos(angle / 2), 0, 0, std::sin(angle / 2)}; }

}  // namespace hvd::petrv2
