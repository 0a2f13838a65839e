#include "training/petrv2/optim/clip.h"

namespace hvd::petrv2 {
namespace {

constexpr double kNormEps = 1e-6;
constexpr double kGrowth = 2;
constexpr double kBackoff = 0.5;
constexpr std::int64_t kGrowthInterval = 1000;
constexpr double kMaxScale = 65536;

}  // namespace

ClipResult clip(const std::vector<at::Tensor>& gradients, double max_norm,
                const at::Tensor& inverse_scale) {
  const at::NoGradGuard no_grad;
  ClipResult result;
  result.norm = at::stack(at::_foreach_norm(gradients)).norm();
  if (inverse_scale.defined()) result.norm = result.norm * inverse_scale;
  result.found_inf = result.norm.isfinite().logical_not().to(at::kFloat);
  at::Tensor factor = (max_norm / (result.norm + kNormEps)).clamp_max(1);
  if (inverse_scale.defined()) factor = factor * inverse_scale;
  at::_foreach_mul_(gradients, factor.to(gradients.front().scalar_type()));
  return result;
}

LossScale::LossScale(at::Device device, double start)
    : value_(at::full({}, start, at::device(device).dtype(at::kFloat))),
      good_steps_(at::zeros({}, at::device(device).dtype(at::kInt))) {}

void LossScale::update(const at::Tensor& found_inf) {
  at::_amp_update_scale_(value_, good_steps_, found_inf, kGrowth, kBackoff, kGrowthInterval);
  value_.clamp_max_(kMaxScale);
}

}  // namespace hvd::petrv2
