// Whether the blocks of backbone and decoder keep what their backward pass needs, or compute it
// again there: the same numbers, with less memory and more time (docs/performance.md). Pure.
#pragma once

#include <cstdint>

#include "training/petrv2/config.h"

namespace hvd::petrv2 {

enum class Recompute { kAuto, kYes, kNo };

struct MemoryNeed {
  std::uint64_t num_pixels = 0;    // of a micro-batch, all views
  bool is_half = false;            // backbone and neck in bf16 or fp16
  std::uint64_t device_bytes = 0;  // the GPU's memory; 0: a CPU
};

// kAuto: keeps all where a GPU has twice the memory for it; else, and on a CPU, what the
// configuration says.
void settle_recompute(ModelConfig& model, Recompute wish, const MemoryNeed& need);

// "kept", "computed again", "of the backbone computed again", "of the decoder computed again".
[[nodiscard]] const char* recompute_text(const ModelConfig& model);

}  // namespace hvd::petrv2
