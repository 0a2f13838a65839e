#include "training/petrv2/model/checkpoint.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "training/petrv2/model/autocast.h"

namespace hvd::petrv2 {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor random_state(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(at::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// The generator stands at state within the scope and where it stood before after it.
class RandomStateGuard {
 public:
  RandomStateGuard(at::Device device, const at::Tensor& state) : device_(device) {
    if (!state.defined()) return;
    old_ = random_state(device);
    set_random_state(device, state);
  }
  ~RandomStateGuard() {
    if (old_.defined()) set_random_state(device_, old_);
  }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  const at::Device device_;
  at::Tensor old_;
};

// What the second run needs beside the inputs.
struct Recipe : torch::CustomClassHolder {
  Block block;
  at::Device device = at::kCPU;
  at::Tensor random_state;  // undefined: the block draws nothing
  std::optional<at::ScalarType> autocast;

  at::Tensor run_again(const variable_list& inputs) const {
    const at::AutoGradMode with_graph(true);
    const RandomStateGuard random(device, random_state);
    const AutocastGuard precision(device.type(), autocast);
    return block(inputs);
  }
};

variable_list detached(const variable_list& inputs) {
  variable_list leaves;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(input.detach().set_requires_grad(input.requires_grad()));
  }
  return leaves;
}

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
  static at::Tensor forward(AutogradContext* context, c10::intrusive_ptr<Recipe> recipe,
                            at::TensorList inputs) {
    variable_list saved = inputs.vec();
    at::Tensor output = recipe->block(saved);
    context->save_for_backward(std::move(saved));
    context->saved_data["recipe"] =
        c10::IValue::make_capsule(c10::intrusive_ptr<torch::CustomClassHolder>(std::move(recipe)));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const c10::intrusive_ptr<torch::CustomClassHolder> held =
        context->saved_data["recipe"].toCapsule();
    const auto& recipe = static_cast<const Recipe&>(*held);
    const variable_list leaves = detached(context->get_saved_variables());
    const at::Tensor output = recipe.run_again(leaves);
    torch::autograd::backward({output}, {gradients[0]});
    variable_list result{at::Tensor()};  // the recipe's
    for (const at::Tensor& leaf : leaves) result.push_back(leaf.grad());
    return result;
  }
};

std::optional<at::ScalarType> current_autocast(at::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
}

}  // namespace

at::Tensor checkpoint(const Block& block, const variable_list& inputs, BlockRandomness randomness) {
  const bool needs_gradient =
      at::GradMode::is_enabled() &&
      std::any_of(inputs.begin(), inputs.end(),
                  [](const at::Tensor& input) { return input.requires_grad(); });
  if (!needs_gradient) return block(inputs);
  auto recipe = c10::make_intrusive<Recipe>();
  recipe->block = block;
  recipe->device = inputs.front().device();
  recipe->autocast = current_autocast(recipe->device.type());
  if (randomness == BlockRandomness::kDropout) {
    recipe->random_state = random_state(recipe->device);
  }
  return CheckpointFunction::apply(recipe, at::TensorList(inputs));
}

}  // namespace hvd::petrv2
