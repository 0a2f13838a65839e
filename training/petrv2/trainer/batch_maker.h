// Samples of the loader as one Batch of the model, in two steps: on the host, ahead of time and on
// any thread, then on the device.
#pragma once

#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/data/sample.h"
#include "training/petrv2/model/petrv2.h"

namespace hvd::petrv2 {

struct HostBatch {
  at::Tensor images;  // (B, 12, H, W, 3) uint8 RGB; page-locked for a GPU
  Batch rest;         // all but Batch::image
};

// All samples of one size, that of the model's configuration. For a GPU the images lie in
// page-locked memory, so that their copy does not wait.
[[nodiscard]] HostBatch host_batch(const std::vector<Sample>& samples, bool is_for_gpu);

// Thread: the trainer's.
[[nodiscard]] Batch on_device(HostBatch host, const Petrv2& model);

}  // namespace hvd::petrv2
