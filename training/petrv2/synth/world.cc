#include "training/petrv2/synth/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

namespace hvd::petrv2 {
namespace {

constexpr double kPi = std::numbers::pi;
// Beside the trainer's purposes of DrawPurpose, whose numbers end far below.
constexpr DrawPurpose kWorldDraws = DrawPurpose{1000};

// Mean sizes are those of the real data set's classes.
struct ClassTraits {
  Vector3 size;      // w l h, m
  double top_speed;  // m/s; 0: never moves
};
constexpr std::array<ClassTraits, kClassNames.size()> kTraits = {{{{1.95, 4.62, 1.73}, 9},
                                                                  {{2.51, 6.94, 2.84}, 7},
                                                                  {{2.82, 6.45, 3.19}, 2},
                                                                  {{2.95, 11.1, 3.47}, 7},
                                                                  {{2.92, 12.3, 3.87}, 6},
                                                                  {{2.53, 0.50, 0.98}, 0},
                                                                  {{0.77, 2.11, 1.46}, 8},
                                                                  {{0.60, 1.70, 1.28}, 4},
                                                                  {{0.67, 0.73, 1.77}, 1.6},
                                                                  {{0.41, 0.41, 1.07}, 0}}};

EgoPath draw_ego(CounterRng& rng) {
  return {rng.uniform(500, 2000), rng.uniform(500, 2000), rng.uniform(-kPi, kPi), rng.uniform(2, 8),
          rng.uniform(-0.08, 0.08)};
}

Vector3 draw_size(const ClassTraits& traits, CounterRng& rng) {
  Vector3 size = traits.size;
  for (double& side : size) side *= rng.uniform(0.9, 1.1);
  return size;
}

// Vehicles keep to the road's direction, either way; people and things face anywhere.
double draw_heading(const ClassTraits& traits, double road, CounterRng& rng) {
  if (traits.top_speed < 2) return rng.uniform(-kPi, kPi);
  return road + (rng.below(2) == 0 ? 0 : kPi) + rng.uniform(-0.3, 0.3);
}

// Somewhere around the vehicle at a random moment of the scene.
WorldObject draw_object(int label, const EgoPath& ego, double duration, CounterRng& rng) {
  const ClassTraits& traits = kTraits[static_cast<std::size_t>(label)];
  const double time = rng.uniform(0, duration);
  const Vector3 center = ego.at(time).translation;
  const double distance = rng.uniform(6, 42);
  const double direction = rng.uniform(-kPi, kPi);
  WorldObject object;
  object.label = label;
  object.size = draw_size(traits, rng);
  object.heading = draw_heading(traits, ego.heading + ego.yaw_rate * time, rng);
  object.speed = rng.below(2) == 0 ? 0 : rng.uniform(0.3, 1) * traits.top_speed;
  object.brightness = rng.uniform(0.8, 1.0);
  const double way = object.speed * time;
  object.x = center[0] + distance * std::cos(direction) - way * std::cos(object.heading);
  object.y = center[1] + distance * std::sin(direction) - way * std::sin(object.heading);
  return object;
}

double radius_of(const WorldObject& object) {
  return std::hypot(object.size[0], object.size[1]) / 2;
}

bool are_apart(const Vector3& a, const Vector3& b, double distance) {
  return std::hypot(a[0] - b[0], a[1] - b[1]) > distance;
}

// Whether it touches neither the vehicle nor another object at any time of the scene.
bool has_room(const WorldObject& object, const WorldScene& scene, double duration) {
  constexpr double kStep = 0.25;  // s
  constexpr double kGap = 0.3;    // m
  constexpr double kEgoRadius = 3.5;
  const double radius = radius_of(object) + kGap;
  for (double time = 0; time < duration + kStep; time += kStep) {
    const Vector3 place = object.center_at(time);
    if (!are_apart(place, scene.ego.at(time).translation, radius + kEgoRadius)) return false;
    const auto is_apart = [&](const WorldObject& other) {
      return are_apart(place, other.center_at(time), radius + radius_of(other));
    };
    if (!std::all_of(scene.objects.begin(), scene.objects.end(), is_apart)) return false;
  }
  return true;
}

std::optional<WorldObject> place_object(int label, const WorldScene& scene, double duration,
                                        CounterRng& rng) {
  constexpr int kMostTries = 100;
  for (int i = 0; i < kMostTries; ++i) {
    const WorldObject object = draw_object(label, scene.ego, duration, rng);
    if (has_room(object, scene, duration)) return object;
  }
  return std::nullopt;
}

}  // namespace

Mount EgoPath::at(double time) const {
  const double turned = yaw_rate * time;
  // The chord of an arc of length speed * time; sin(a) / a is 1 at 0.
  const double half = turned / 2;
  const double chord = speed * time * (half == 0 ? 1 : std::sin(half) / half);
  return {{x + chord * std::cos(heading + half), y + chord * std::sin(heading + half), 0},
          turn_about_z(heading + turned)};
}

Vector3 WorldObject::center_at(double time) const {
  return {x + speed * time * std::cos(heading), y + speed * time * std::sin(heading), size[2] / 2};
}

WorldScene make_scene(const WorldPlan& plan, std::size_t scene) {
  constexpr std::int64_t kFirstStart = 1532402927600000;  // us since 1970
  constexpr std::int64_t kBetweenScenes = 60000000;
  CounterRng rng(plan.seed, 0, scene, kWorldDraws);
  WorldScene world;
  world.name = fmt::format("scene-{:04}", scene + 1);
  const std::int64_t length = static_cast<std::int64_t>(plan.samples_per_scene) * kSamplePeriod;
  world.start_us = kFirstStart + static_cast<std::int64_t>(scene) * (kBetweenScenes + length);
  world.ego = draw_ego(rng);
  world.rig = make_camera_rig(plan.image, rng);
  const double duration = 1e-6 * static_cast<double>(length - kSamplePeriod);
  const std::size_t first_label = rng.below(kClassNames.size());
  for (std::size_t i = 0; i < plan.objects_per_scene; ++i) {
    const int label = static_cast<int>((first_label + i) % kClassNames.size());
    if (const auto object = place_object(label, world, duration, rng)) {
      world.objects.push_back(*object);
    }
  }
  return world;
}

}  // namespace hvd::petrv2
