#include "training/petrv2/loss/matching_cost.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>

#include "training/petrv2/model/upload.h"

namespace hvd::petrv2 {
namespace {

constexpr double kClassCost = 2.0;
constexpr double kBoxCost = 0.25;
constexpr double kLogEps = 1e-12;
constexpr double kNonFiniteCost = 100;
constexpr int kMatchedDims = 8;  // the velocity takes no part in plain matching

// A cost tensor on its way to the host, shared by the tasks that solve its samples.
class CostOnHost {
 public:
  explicit CostOnHost(const at::Tensor& cost) {
    if (cost.is_cpu()) {
      host_ = cost.contiguous();
      return;
    }
    host_ = at::empty(cost.sizes(), cost.options().device(at::kCPU).pinned_memory(true));
    host_.copy_(cost, /*non_blocking=*/true);
    source_ = cost;
    copied_ = std::make_unique<c10::Event>(cost.device().type());
    const c10::impl::VirtualGuardImpl device(cost.device().type());
    copied_->record(device.getStream(cost.device()));
  }

  // (Q, num_boxes) of one sample, row-major.
  [[nodiscard]] std::vector<double> of_sample(std::int64_t sample, int num_boxes) const {
    if (copied_) copied_->synchronize();
    const at::Tensor part = host_[sample].slice(1, 0, num_boxes).to(at::kDouble).contiguous();
    const auto* begin = part.const_data_ptr<double>();
    return {begin, begin + part.numel()};
  }

 private:
  at::Tensor host_;
  at::Tensor source_;  // lives until the copy is done
  std::unique_ptr<c10::Event> copied_;
};

Assignment solve_sample(const CostOnHost& cost, std::int64_t sample, int num_queries,
                        int num_boxes) {
  const at::NoGradGuard no_grad;
  const std::vector<double> values = cost.of_sample(sample, num_boxes);
  return solve_assignment(values, num_queries, num_boxes);
}

}  // namespace

at::Tensor focal_cost(const at::Tensor& class_logits) {
  const at::Tensor p = class_logits.sigmoid();
  const at::Tensor as_positive = -(p + kLogEps).log() * kFocalAlpha * (1 - p).square();
  const at::Tensor as_negative = -(1 - p + kLogEps).log() * (1 - kFocalAlpha) * p.square();
  return kClassCost * (as_positive - as_negative);
}

at::Tensor target_code(const at::Tensor& boxes) {
  const auto channels = [&boxes](int begin, int end) { return boxes.slice(1, begin, end); };
  const at::Tensor theta = channels(6, 7);
  return at::cat({channels(0, 2), channels(3, 5).log(), channels(2, 3), channels(5, 6).log(),
                  theta.sin(), theta.cos(), channels(7, 9)},
                 1);
}

MatchingTargets make_matching_targets(const std::vector<Targets>& targets,
                                      const at::TensorOptions& options) {
  MatchingTargets result;
  for (const Targets& target : targets) {
    result.num_boxes.push_back(static_cast<int>(target.boxes.size(0)));
  }
  const auto num_samples = static_cast<std::int64_t>(targets.size());
  const int most = *std::max_element(result.num_boxes.begin(), result.num_boxes.end());
  const at::Tensor labels = at::zeros({num_samples, most}, at::kLong);
  const at::Tensor codes = at::zeros({num_samples, most, kCodeSize}, at::kDouble);
  for (std::int64_t b = 0; b < num_samples; ++b) {
    const int count = result.num_boxes[b];
    labels[b].slice(0, 0, count).copy_(targets[b].labels);
    codes[b].slice(0, 0, count).copy_(target_code(targets[b].boxes));
  }
  result.labels = upload(labels, options.device());
  result.codes = upload(codes, options);
  return result;
}

at::Tensor matching_cost(const at::Tensor& class_logits, const at::Tensor& boxes,
                         const MatchingTargets& targets, MatcherKind matcher,
                         const at::Tensor& code_weights) {
  const at::NoGradGuard no_grad;
  const std::int64_t num_queries = class_logits.size(1);
  const at::Tensor index = targets.labels.unsqueeze(1).expand({-1, num_queries, -1});
  const at::Tensor class_cost = focal_cost(class_logits).gather(2, index);
  const bool is_weighted = matcher == MatcherKind::kWeighted;
  const int dims = is_weighted ? kCodeSize : kMatchedDims;
  at::Tensor difference =
      (boxes.slice(2, 0, dims).unsqueeze(2) - targets.codes.slice(2, 0, dims).unsqueeze(1)).abs();
  if (is_weighted) difference = difference * code_weights;
  return at::nan_to_num(class_cost + kBoxCost * difference.sum(3), kNonFiniteCost, kNonFiniteCost,
                        -kNonFiniteCost);
}

std::vector<PendingAssignment> solve_in(boost::asio::thread_pool& pool, const at::Tensor& cost,
                                        const std::vector<int>& num_boxes) {
  const auto on_host = std::make_shared<const CostOnHost>(cost);
  const int num_queries = static_cast<int>(cost.size(1));
  std::vector<PendingAssignment> pending;
  for (std::size_t sample = 0; sample < num_boxes.size(); ++sample) {
    std::packaged_task<Assignment()> task(
        [on_host, sample, num_queries, count = num_boxes[sample]] {
          return solve_sample(*on_host, static_cast<std::int64_t>(sample), num_queries, count);
        });
    pending.push_back(task.get_future());
    boost::asio::post(pool, std::move(task));
  }
  return pending;
}

}  // namespace hvd::petrv2
