// Draws what a camera of the made-up world sees: sky, a ground of 4 m tiles, and the objects as
// boxes in their class's colour. A box's faces are shaded so that size, place and heading can be
// told from the image: bright front (and the front quarter of the sides), dark rear. Pure but for
// the canvas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "training/petrv2/synth/canvas.h"
#include "training/petrv2/synth/world.h"

namespace hvd::petrv2 {

// The colour of a class, unshaded; shading only scales it, so its hue tells the class.
[[nodiscard]] Colour class_colour(int label);

// Pixels of one object in one image.
struct Coverage {
  std::int64_t visible = 0;  // seen
  std::int64_t total = 0;    // inside the image, seen or hidden behind others
};

struct CameraView {
  Matrix4 camera2global = kIdentity4;  // m
  Matrix3 intrinsic{};                 // px
};

// Paints the whole canvas anew, as it looks `time` seconds into the scene. By object.
std::vector<Coverage> paint_scene(const WorldScene& scene, double time, const CameraView& view,
                                  Canvas& canvas);

}  // namespace hvd::petrv2
