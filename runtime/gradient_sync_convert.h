// A bucket's numbers between its storage and what travels. On the calling thread for the CPU's
// memory, on the current stream for a GPU's.
#pragma once

#include "runtime/gradient_sync_bucket.h"

namespace hvd {

// flat -> wire -> staging; with staging, returns when that is there.
void load_wire(SyncBucket& bucket);
// staging -> wire -> flat.
void store_wire(SyncBucket& bucket);
// What the communicator reduces.
[[nodiscard]] const at::Tensor& sent(const SyncBucket& bucket);

}  // namespace hvd
