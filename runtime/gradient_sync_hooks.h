// Tells when the gradient of a leaf has been accumulated: a hook on the leaf's own node in the
// graph, which exists as long as this (a leaf itself holds its node weakly).
//
// on_gradient runs on autograd's threads, for a GPU with the stream of the gradient as the current
// one. It must not throw. No backward may run when this is destroyed.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hvd {

class GradientHooks {
 public:
  // on_gradient: given the index among `leaves`.
  GradientHooks(const std::vector<at::Tensor>& leaves,
                const std::function<void(std::size_t)>& on_gradient);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  struct Entry {
    std::shared_ptr<torch::autograd::Node> accumulator;  // shared with graphs that are in use
    std::uintptr_t hook = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace hvd
