// The nuScenes v1.0 tables of the made-up data set: the same scenes always give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "training/petrv2/synth/synth_images.h"
#include "training/petrv2/synth/world.h"

namespace hvd::petrv2 {

// All thirteen tables into `folder`, which exists. Each object is annotated at every sample that
// finds it within 80 m of the vehicle; one that shows only a few pixels has no lidar points.
// Attributes and the map's image are left out.
[[nodiscard]] Result<void> write_synth_tables(const std::vector<WorldScene>& scenes,
                                              const WorldPlan& plan,
                                              const std::vector<SceneCoverage>& coverage,
                                              const std::string& folder);

}  // namespace hvd::petrv2
