// Streams: the one that another library made, as one of torch's.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace hvd {

// handle: a cudaStream_t of `device`; not owned.
[[nodiscard]] c10::Stream stream_of_handle(void* handle, c10::Device device);

// The one that work of the calling thread goes to.
[[nodiscard]] c10::Stream current_stream(c10::Device device);
// A stream of torch's, of the highest priority.
[[nodiscard]] c10::Stream priority_stream(c10::Device device);

}  // namespace hvd
