#include "training/petrv2/loss/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "training/petrv2/loss/matching_cost.h"
#include "training/petrv2/model/upload.h"

namespace hvd::petrv2 {
namespace {

constexpr double kClassWeight = 2.0;
constexpr double kBoxWeight = 0.25;
// Share of denoising copies that keep their class: the ball of radius 0.75 in the cube of noise.
constexpr double kPositiveShare = 3.14159 / 6 * 0.75 * 0.75 * 0.75;

std::string layer_name(std::int64_t layer, std::int64_t num_layers) {
  return layer + 1 == num_layers ? "last" : fmt::format("d{}", layer);
}

// per_layer (L) -> terms; a term that is not finite becomes a number.
void add_terms(LossTerms& terms, const std::string& name, const at::Tensor& per_layer) {
  const at::Tensor finite = at::nan_to_num(per_layer);
  for (std::int64_t layer = 0; layer < finite.size(0); ++layer) {
    terms.emplace_back(fmt::format("{}.{}", name, layer_name(layer, finite.size(0))),
                       finite[layer]);
  }
}

// (..., 10) bool; labels (...) with kNumClasses for background.
at::Tensor is_class(const at::Tensor& labels) {
  return labels.unsqueeze(-1) == at::arange(kNumClasses, labels.options());
}

// logits (L, ..., 10), labels (L, ...): (L).
at::Tensor class_loss(const at::Tensor& logits, const at::Tensor& labels, double normaliser) {
  const at::Tensor sums = focal_loss(logits, is_class(labels)).flatten(1).sum(1);
  return sums * (kClassWeight / std::max(normaliser, 1.0));
}

// Rows (L * n, 10) of predictions and of targets, weight (L * n, 1): (L).
at::Tensor box_loss(const at::Tensor& rows, const at::Tensor& codes, const at::Tensor& row_weight,
                    const at::Tensor& code_weights, std::int64_t num_layers, double normaliser) {
  const at::Tensor error = (rows - codes).abs() * code_weights * row_weight;
  return error.view({num_layers, -1}).sum(1) * (kBoxWeight / std::max(normaliser, 1.0));
}

// Every matched pair of every layer: where its query and its box stand.
struct Matches {
  at::Tensor labels;      // (L, B, Q) int64: class or background
  at::Tensor query_rows;  // (L * n) int64, in (L * B * Q)
  at::Tensor box_rows;    // (L * n) int64, among all boxes
  std::int64_t num_per_layer = 0;
};

Matches collect_matches(const at::Tensor& class_logits,
                        const std::vector<std::vector<Assignment>>& assignments,
                        const LossTargets& targets) {
  const std::int64_t num_samples = class_logits.size(1), num_queries = class_logits.size(2);
  at::Tensor labels =
      at::full({class_logits.size(0) * num_samples * num_queries}, kNumClasses, at::kLong);
  auto* label = labels.mutable_data_ptr<std::int64_t>();
  const auto* box_label = targets.labels.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> query_rows, box_rows;
  for (std::size_t layer = 0; layer < assignments.size(); ++layer) {
    for (std::size_t sample = 0; sample < assignments[layer].size(); ++sample) {
      const auto first_row =
          (static_cast<std::int64_t>(layer) * num_samples + static_cast<std::int64_t>(sample)) *
          num_queries;
      for (const auto& [query, box] : assignments[layer][sample]) {
        query_rows.push_back(first_row + query);
        box_rows.push_back(targets.first[sample] + box);
        label[query_rows.back()] = box_label[box_rows.back()];
      }
    }
  }
  const at::Device device = class_logits.device();
  return {upload(labels.view({-1, num_samples, num_queries}), device),
          upload(at::tensor(query_rows, at::kLong), device),
          upload(at::tensor(box_rows, at::kLong), device),
          static_cast<std::int64_t>(query_rows.size() / assignments.size())};
}

}  // namespace

at::Tensor focal_loss(const at::Tensor& logits, const at::Tensor& target) {
  const at::Tensor p = logits.sigmoid();
  const at::Tensor as_positive = kFocalAlpha * (1 - p).square() * -at::log_sigmoid(logits);
  const at::Tensor as_negative = (1 - kFocalAlpha) * p.square() * -at::log_sigmoid(-logits);
  return at::where(target, as_positive, as_negative);
}

LossTargets make_loss_targets(const std::vector<Targets>& targets,
                              const at::TensorOptions& options) {
  LossTargets result;
  std::vector<at::Tensor> boxes, labels;
  std::int64_t first = 0;
  for (const Targets& target : targets) {
    boxes.push_back(target.boxes);
    labels.push_back(target.labels);
    result.first.push_back(first);
    first += target.boxes.size(0);
  }
  const at::Tensor codes = target_code(at::cat(boxes));
  const at::Tensor is_finite = codes.isfinite().all(1);
  result.codes = upload(codes.masked_fill(is_finite.logical_not().unsqueeze(1), 0), options);
  result.is_finite = upload(is_finite, options);
  result.labels = at::cat(labels).contiguous();
  return result;
}

LossTerms detection_losses(const at::Tensor& class_logits, const at::Tensor& boxes,
                           const std::vector<std::vector<Assignment>>& assignments,
                           const LossTargets& targets, const at::Tensor& code_weights,
                           double box_normaliser) {
  const Matches matches = collect_matches(class_logits, assignments, targets);
  LossTerms terms;
  add_terms(terms, "loss_cls",
            class_loss(class_logits, matches.labels, static_cast<double>(matches.num_per_layer)));
  const at::Tensor rows = boxes.reshape({-1, kCodeSize}).index_select(0, matches.query_rows);
  const at::Tensor codes = targets.codes.index_select(0, matches.box_rows);
  const at::Tensor weight = targets.is_finite.index_select(0, matches.box_rows).unsqueeze(1);
  add_terms(terms, "loss_box",
            matches.num_per_layer == 0
                ? rows.sum() * at::zeros({boxes.size(0)}, boxes.options().requires_grad(false))
                : box_loss(rows, codes, weight, code_weights, boxes.size(0), box_normaliser));
  return terms;
}

LossTerms denoising_losses(const at::Tensor& class_logits, const at::Tensor& boxes,
                           const DenoisingQueries& queries, const LossTargets& targets,
                           const at::Tensor& code_weights, double box_normaliser) {
  const std::int64_t num_layers = boxes.size(0);
  const auto of_copies = [&](const at::Tensor& x) {  // (L, M, 10)
    return x.flatten(1, 2).index_select(1, queries.slots);
  };
  const auto num_copies = static_cast<double>(queries.slots.size(0));
  LossTerms terms;
  add_terms(
      terms, "dn_loss_cls",
      class_loss(of_copies(class_logits), queries.labels.unsqueeze(0).expand({num_layers, -1}),
                 num_copies * kPositiveShare));
  at::Tensor weights = code_weights.clone();
  weights.slice(0, 6, 8).zero_();  // the heading: denoising hurts it
  const at::Tensor codes = targets.codes.index_select(0, queries.boxes);
  const at::Tensor is_finite = targets.is_finite.index_select(0, queries.boxes);
  add_terms(
      terms, "dn_loss_box",
      box_loss(of_copies(boxes).flatten(0, 1), codes.repeat({num_layers, 1}),
               is_finite.repeat({num_layers}).unsqueeze(1), weights, num_layers, box_normaliser));
  return terms;
}

}  // namespace hvd::petrv2
