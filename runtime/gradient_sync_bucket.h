// A bucket: flat storage for some gradients side by side, each a view with the sizes AND strides of
// its parameter (fused optimisers read memory by position), and what of it travels.
//
// Threads: filled by the hook of its last gradient or by finish(), then the communication thread's,
// then the trainer's again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/compression.h"
#include "runtime/gradient_sync_report.h"

namespace hvd {

struct SyncBucket {
  BucketFacts facts;
  std::vector<std::size_t> parameters;  // indices among the synchroniser's
  at::Tensor flat;                      // the gradients, then the riders
  std::vector<at::Tensor> views;        // one for each parameter
  at::Tensor riders;                    // a view; undefined without
  WireFormat format;
  at::Tensor wire;     // what is reduced: flat itself, or its compressed copy
  at::Tensor staging;  // wire in pinned memory, where the communicator works in the host's
};

// The DataType of tensors that communicators can reduce; an error for others.
[[nodiscard]] Result<DataType> data_type_of(at::ScalarType type);
// "float32 [64, 3, 7, 7] on cpu".
[[nodiscard]] std::string describe(const at::Tensor& tensor);

struct BucketSettings {
  int index = 0;
  std::size_t num_riders = 0;
  Compression compression = Compression::kNone;
  int num_ranks = 1;
  DeviceKind data_kind = DeviceKind::kCpu;
};
// options: type and device of the gradients, which are those of `tensors[parameters[...]]`.
[[nodiscard]] SyncBucket make_bucket(std::vector<std::size_t> parameters,
                                     const std::vector<at::Tensor>& tensors,
                                     const at::TensorOptions& options,
                                     const BucketSettings& settings);

// Moves what backward has left in the tensors' grad() into the bucket and makes the grad() its
// views; zeros where there is none. On the current stream. Returns how many had none.
std::int64_t fill_bucket(SyncBucket& bucket, const std::vector<at::Tensor>& tensors,
                         std::span<const double> riders);

}  // namespace hvd
