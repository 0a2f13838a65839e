// Paints and writes all images of the made-up data set, on as many threads as it is given. What an
// image shows depends on its scene and time only, so the threads change nothing in the files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "training/petrv2/synth/scene_painter.h"
#include "training/petrv2/synth/world.h"

namespace hvd::petrv2 {

// Pixels of every object at every sample, summed over the six key frame images.
using SceneCoverage = std::vector<std::vector<Coverage>>;  // [sample][object]

// Below `folder`, in the folders samples/CAMERA and sweeps/CAMERA, which exist. By scene.
[[nodiscard]] Result<std::vector<SceneCoverage>> write_synth_images(
    const std::vector<WorldScene>& scenes, const WorldPlan& plan, const std::string& folder,
    unsigned num_threads);

// The whole of `bytes` as a file; an existing one is replaced.
[[nodiscard]] Result<void> write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace hvd::petrv2
