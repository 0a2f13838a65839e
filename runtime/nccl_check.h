// Errors of CUDA and NCCL calls as sentences, and their numbers as versions.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

[[nodiscard]] inline Result<void> check_cuda(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return {};
  return make_error("{}: CUDA says: {}", what, cudaGetErrorString(code));
}

// 13000 -> "13.0", CUDA's way to number.
[[nodiscard]] inline std::string cuda_version_text(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// 22809 -> "2.28.9", NCCL's.
[[nodiscard]] inline std::string nccl_version_text(int number) {
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

}  // namespace hvd
