// Which gradients travel together, and in which order the buckets are handed to the communicator.
// Pure: the same tensors in the same order give the same buckets on every rank.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hvd {

struct PlannedTensor {
  std::size_t num_bytes = 0;
  int kind = 0;  // tensors of one bucket have the same kind: type and device
};

struct BucketLimits {
  std::size_t first_bytes = 0;
  std::size_t bytes = 0;
};

// tensors: in the order in which their gradients become ready. The result holds the index of each
// exactly once; buckets in the order in which they become ready, tensors in theirs.
//
// The first bucket ends where first_bytes would be passed or another kind begins; any other where
// `bytes` would be. A tensor larger than a limit has a bucket to itself. The last bucket is all
// that nothing overlaps: where it holds more than twice first_bytes, its end, of at most
// first_bytes, becomes a bucket of its own.
[[nodiscard]] std::vector<std::vector<std::size_t>> plan_buckets(
    std::span<const PlannedTensor> tensors, const BucketLimits& limits);

}  // namespace hvd
