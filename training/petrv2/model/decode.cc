#include <algorithm>

#include "training/petrv2/model/petrv2.h"
#include "training/petrv2/model/position.h"

namespace hvd::petrv2 {
namespace {

constexpr std::int64_t kMaxDetections = 300;

// (n, 10) codes -> (n, 9) boxes.
at::Tensor boxes_of(const at::Tensor& codes) {
  const auto channel = [&codes](int i) { return codes.slice(1, i, i + 1); };
  return at::cat({channel(0), channel(1), channel(4), channel(2).exp(), channel(3).exp(),
                  channel(5).exp(), at::atan2(channel(6), channel(7)), codes.slice(1, 8, 10)},
                 1);
}

at::Tensor is_inside(const at::Tensor& centres) {
  const at::Tensor low = at::tensor(at::ArrayRef<double>(kPositionRange.low), at::kDouble);
  const at::Tensor high = at::tensor(at::ArrayRef<double>(kPositionRange.high), at::kDouble);
  return centres.ge(low).logical_and(centres.le(high)).all(1);
}

// class_logits (Q, 10), boxes (Q, 10).
DecodedBoxes decode_sample(const at::Tensor& class_logits, const at::Tensor& boxes) {
  const at::Tensor scores = class_logits.sigmoid().flatten();
  const auto [best, index] = scores.topk(std::min(kMaxDetections, scores.numel()));
  const at::Tensor query = at::floor_divide(index, kNumClasses);
  const at::Tensor decoded = boxes_of(boxes.index_select(0, query));
  const at::Tensor kept = is_inside(decoded.slice(1, 0, 3)).nonzero().squeeze(1);
  return {decoded.index_select(0, kept), best.index_select(0, kept),
          at::remainder(index, kNumClasses).index_select(0, kept)};
}

}  // namespace

std::vector<DecodedBoxes> Petrv2::decode(const Predictions& predictions) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = predictions.class_logits[-1].to(at::kCPU, at::kDouble);
  const at::Tensor boxes = predictions.boxes[-1].to(at::kCPU, at::kDouble);
  std::vector<DecodedBoxes> samples;
  for (std::int64_t b = 0; b < logits.size(0); ++b) {
    samples.push_back(decode_sample(logits[b], boxes[b]));
  }
  return samples;
}

}  // namespace hvd::petrv2
