#include "runtime/gradient_sync_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace hvd {
namespace {

using torch::autograd::variable_list;

// Not LambdaPostHook, whose constructor changed between versions of libtorch.
class LeafHook final : public torch::autograd::FunctionPostHook {
 public:
  LeafHook(std::size_t index, std::function<void(std::size_t)> on_gradient)
      : index_(index), on_gradient_(std::move(on_gradient)) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    on_gradient_(index_);
    return outputs;
  }

 private:
  const std::size_t index_;
  const std::function<void(std::size_t)> on_gradient_;
};

}  // namespace

GradientHooks::GradientHooks(const std::vector<at::Tensor>& leaves,
                             const std::function<void(std::size_t)>& on_gradient) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(leaves[i]);
    const auto hook = accumulator->add_post_hook(std::make_unique<LeafHook>(i, on_gradient));
    entries_.push_back({std::move(accumulator), hook});
  }
}

GradientHooks::~GradientHooks() {
  for (Entry& entry : entries_) entry.accumulator->del_post_hook(entry.hook);
}

}  // namespace hvd
