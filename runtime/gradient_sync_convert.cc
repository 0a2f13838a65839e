#include "runtime/gradient_sync_convert.h"

#include <ATen/ATen.h>

#include "runtime/gradient_sync_cuda.h"

namespace hvd {
namespace {

std::size_t num_elements(const SyncBucket& bucket) {
  return static_cast<std::size_t>(bucket.flat.numel());
}

// Not torch's conversion: from a thread of its own it would start another set of OpenMP threads.
bool is_own_conversion(const SyncBucket& bucket) {
  return bucket.format.is_compressed && bucket.flat.is_cpu();
}

void convert_to_wire(SyncBucket& bucket) {
  const WireFormat& format = bucket.format;
  if (is_own_conversion(bucket)) {
    compress(bucket.flat.const_data_ptr<float>(), bucket.wire.mutable_data_ptr(),
             num_elements(bucket), format);
  } else if (format.scale != 1) {
    at::mul_out(bucket.wire, bucket.flat, at::scalar_tensor(format.scale));  // rounds once
  } else if (format.is_compressed) {
    bucket.wire.copy_(bucket.flat);
  }
}

void convert_from_wire(SyncBucket& bucket) {
  const WireFormat& format = bucket.format;
  if (is_own_conversion(bucket)) {
    decompress(bucket.wire.const_data_ptr(), bucket.flat.mutable_data_ptr<float>(),
               num_elements(bucket), format);
    return;
  }
  if (format.is_compressed) bucket.flat.copy_(bucket.wire);
  if (format.scale != 1) bucket.flat.mul_(format.scale);
}

}  // namespace

void load_wire(SyncBucket& bucket) {
  convert_to_wire(bucket);
  if (!bucket.staging.defined()) return;
  bucket.staging.copy_(bucket.wire, /*non_blocking=*/true);
  current_stream(bucket.wire.device()).synchronize();
}

void store_wire(SyncBucket& bucket) {
  if (bucket.staging.defined()) bucket.wire.copy_(bucket.staging, /*non_blocking=*/true);
  convert_from_wire(bucket);
}

const at::Tensor& sent(const SyncBucket& bucket) {
  return bucket.staging.defined() ? bucket.staging : bucket.wire;
}

}  // namespace hvd
