// Samples of the loader as one Batch of the model. Thread: the trainer's.
#pragma once

#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/data/sample.h"
#include "training/petrv2/model/petrv2.h"

namespace hvd::petrv2 {

// All samples of one size, that of the model's configuration. For a GPU the images go through
// page-locked memory, so that their copy does not wait.
[[nodiscard]] Batch make_batch(const std::vector<Sample>& samples, const Petrv2& model,
                               bool is_on_gpu);

}  // namespace hvd::petrv2
