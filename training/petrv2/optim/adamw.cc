#include "training/petrv2/optim/adamw.h"

#include <algorithm>

namespace hvd::petrv2 {
namespace {

std::vector<at::Tensor> pick(const std::vector<at::Tensor>& all,
                             const std::vector<std::size_t>& indices) {
  std::vector<at::Tensor> picked;
  for (const std::size_t i : indices) picked.push_back(all[i]);
  return picked;
}

}  // namespace

AdamW::AdamW(std::vector<at::Tensor> parameters, std::vector<double> lr_factors,
             AdamWOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  TORCH_CHECK(parameters_.size() == lr_factors.size(), "each parameter has one factor");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i];
    first_moments_.push_back(at::zeros_like(parameter));  // with the parameter's strides
    second_moments_.push_back(at::zeros_like(parameter));
    const auto has_factor = [&](const Group& group) { return group.lr_factor == lr_factors[i]; };
    auto group = std::find_if(groups_.begin(), groups_.end(), has_factor);
    if (group == groups_.end()) group = groups_.insert(group, {lr_factors[i], {}});
    group->indices.push_back(i);
  }
  num_steps_ = at::zeros({}, parameters_.front().options().dtype(at::kFloat).requires_grad(false));
}

void AdamW::step(const std::vector<at::Tensor>& gradients, double lr, const at::Tensor& found_inf) {
  TORCH_CHECK(gradients.size() == parameters_.size(), "each parameter has one gradient");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    TORCH_CHECK(gradients[i].strides() == parameters_[i].strides(),
                "a gradient is laid out in another way than its parameter");
  }
  const at::NoGradGuard no_grad;
  num_steps_.add_(1);
  for (const Group& group : groups_) {
    at::_fused_adamw_(pick(parameters_, group.indices), pick(gradients, group.indices),
                      pick(first_moments_, group.indices), pick(second_moments_, group.indices), {},
                      std::vector<at::Tensor>(group.indices.size(), num_steps_),
                      lr * group.lr_factor, options_.betas[0], options_.betas[1],
                      options_.weight_decay, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false, /*grad_scale=*/{}, found_inf);
  }
  num_steps_.sub_(found_inf);  // the kernel does not count, and a skipped step is none
}

}  // namespace hvd::petrv2
