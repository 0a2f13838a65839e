// The device that a rank computes on, and how much of its memory is in use. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "training/torch.h"

namespace hvd::petrv2 {

// "cpu", "cuda" or "auto" (a GPU if there is one; but a CUDA_VISIBLE_DEVICES that shows none is a
// mistake, not a wish for the CPU). Of several GPUs the one of the local rank; fewer
// GPUs than local ranks is an error, unless they may be shared (a test).
[[nodiscard]] Result<at::Device> choose_device(const std::string& wish, int local_rank,
                                               bool may_share);

// Bytes of the GPU's memory, in use or not; 0: a CPU.
[[nodiscard]] std::uint64_t total_memory(const at::Device& device);

// The most that was in use at a time, bytes: of the GPU's allocator, or resident on the CPU.
[[nodiscard]] std::uint64_t peak_memory(const at::Device& device);

}  // namespace hvd::petrv2
