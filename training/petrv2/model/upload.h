// From the host to the model's device without making the host wait for the device.
#pragma once

#include "training/torch.h"

namespace hvd::petrv2 {

// The tensor in the type and on the device of options.
inline at::Tensor upload(const at::Tensor& host, const at::TensorOptions& options) {
  const at::Tensor typed = host.to(c10::typeMetaToScalarType(options.dtype()));
  if (!options.device().is_cuda() || typed.is_cuda()) return typed.to(options.device());
  return typed.pin_memory().to(options.device(), /*non_blocking=*/true);
}

// The same in the tensor's own type.
inline at::Tensor upload(const at::Tensor& host, at::Device device) {
  return upload(host, host.options().device(device));
}

}  // namespace hvd::petrv2
