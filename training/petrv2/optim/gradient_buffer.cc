#include "training/petrv2/optim/gradient_buffer.h"

namespace hvd::petrv2 {

GradientBuffer::GradientBuffer(std::vector<at::Tensor> parameters)
    : parameters_(std::move(parameters)) {
  std::int64_t total = 0;
  for (const at::Tensor& parameter : parameters_) {
    TORCH_CHECK(parameter.is_non_overlapping_and_dense(),
                "a parameter has gaps between its values");
    total += parameter.numel();
  }
  TORCH_CHECK(total > 0, "there is no parameter to train");
  flat_ = at::zeros({total}, parameters_.front().options().requires_grad(false));
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters_) {
    views_.push_back(flat_.as_strided(parameter.sizes(), parameter.strides(), offset));
    offset += parameter.numel();
  }
}

std::int64_t GradientBuffer::gather() {
  std::vector<at::Tensor> to;
  std::vector<at::Tensor> from;
  std::int64_t num_missing = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (gradient.defined()) {
      to.push_back(views_[i]);
      from.push_back(gradient);
      gradient.reset();
    } else {
      views_[i].zero_();
      ++num_missing;
    }
  }
  const at::NoGradGuard no_grad;
  if (!to.empty()) at::_foreach_copy_(to, from);
  return num_missing;
}

}  // namespace hvd::petrv2
