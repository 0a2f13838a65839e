// Writes one scene's records: first all its steps, then its samples.
#pragma once

#include <string>

#include "base/status.h"
#include "training/petrv2/data/records.h"
#include "training/petrv2/synth/convert.h"
#include "training/petrv2/synth/nuscenes_tables.h"

namespace hvd::petrv2 {

// Image files are read from below `dataroot`. Counts what it has written in `report`. An image that
// is missing or cut short is an error, as is a sample without one key frame of every camera.
[[nodiscard]] Result<void> write_scene_records(const NuscenesTables& tables,
                                               const NuscenesScene& scene,
                                               const std::string& dataroot, RecordSetWriter& writer,
                                               ConvertReport& report);

}  // namespace hvd::petrv2
