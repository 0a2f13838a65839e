#include "runtime/gradient_sync_cuda.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDAStream.h>

namespace hvd {

c10::Stream stream_of_handle(void* handle, c10::Device device) {
  return c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(handle), device.index())
      .unwrap();
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream priority_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, true);
}

}  // namespace hvd
