#include "training/petrv2/model/head_training.h"

#include "training/petrv2/loss/losses.h"
#include "training/petrv2/loss/matching_cost.h"

namespace hvd::petrv2 {
namespace {

struct LayerOutputs {
  std::vector<at::Tensor> class_logits, boxes, dn_class_logits, dn_boxes;

  void add(const LayerOutput& output) {
    class_logits.push_back(output.class_logits);
    boxes.push_back(output.boxes);
    if (!output.dn_boxes.defined()) return;
    dn_class_logits.push_back(output.dn_class_logits);
    dn_boxes.push_back(output.dn_boxes);
  }
};

// Collects the assignments of all layers; the solving runs while the model does.
class Matcher {
 public:
  Matcher(boost::asio::thread_pool& pool, const ModelConfig& config,
          const std::vector<Targets>& targets, const at::Tensor& code_weights,
          const LayerAssignments* forced)
      : pool_(pool),
        kind_(config.matcher),
        code_weights_(code_weights),
        forced_(forced),
        targets_(make_matching_targets(targets, code_weights.options())) {}

  void add_layer(const LayerOutput& output) {
    if (forced_ != nullptr) return;
    pending_.push_back(solve_in(
        pool_, matching_cost(output.class_logits, output.boxes, targets_, kind_, code_weights_),
        targets_.num_boxes));
  }

  [[nodiscard]] LayerAssignments wait() {
    if (forced_ != nullptr) return *forced_;
    LayerAssignments assignments;
    for (auto& layer : pending_) {
      auto& samples = assignments.emplace_back();
      for (PendingAssignment& sample : layer) samples.push_back(sample.get());
    }
    return assignments;
  }

 private:
  boost::asio::thread_pool& pool_;
  const MatcherKind kind_;
  const at::Tensor code_weights_;
  const LayerAssignments* const forced_;
  const MatchingTargets targets_;
  std::vector<std::vector<PendingAssignment>> pending_;
};

at::Tensor sum_of(const LossTerms& terms) {
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : terms) values.push_back(value);
  return at::stack(values).sum();
}

// Zeros in the place of the denoising terms of a batch without boxes.
void add_zero_denoising_terms(LossTerms& terms) {
  const LossTerms detection = terms;
  for (const auto& [name, value] : detection) {
    terms.emplace_back("dn_" + name, at::zeros_like(value));
  }
}

DenoisingQueries draw_denoising_queries(const ModelConfig& config,
                                        const std::vector<Targets>& targets,
                                        const ForwardOptions& options,
                                        const at::TensorOptions& tensor_options) {
  if (config.denoising.groups == 0 || !options.has_denoising) return {};
  std::int64_t num_boxes = 0;
  for (const Targets& target : targets) num_boxes += target.boxes.size(0);
  const at::Tensor noise =
      options.dn_noise.defined()
          ? options.dn_noise.to(at::kDouble)
          : at::rand({config.denoising.groups * num_boxes, 3}, at::kDouble) * 2 - 1;
  return make_denoising_queries(targets, noise, config, tensor_options);
}

}  // namespace

TrainResult train_head(const Head& head, const HeadInput& input,
                       const std::vector<Targets>& targets, const Normalisers& normalisers,
                       const ForwardOptions& options, boost::asio::thread_pool& pool) {
  const ModelConfig& config = head.config();
  const at::Tensor& code_weights = head.code_weights();
  const DenoisingQueries denoising =
      draw_denoising_queries(config, targets, options, code_weights.options());
  const LossTargets loss_targets = make_loss_targets(targets, code_weights.options());
  Matcher matcher(pool, config, targets, code_weights, options.forced_assignments);
  LayerOutputs outputs;
  HeadInput with_denoising = input;
  with_denoising.denoising = &denoising;
  head.forward(with_denoising, options.observer, [&](int /*layer*/, const LayerOutput& output) {
    matcher.add_layer(output);
    outputs.add(output);
  });
  const at::Tensor class_logits = at::stack(outputs.class_logits);
  const at::Tensor boxes = at::stack(outputs.boxes);
  LossTerms dn_terms;  // they need no assignment: on a GPU they run while the last one is solved
  if (denoising.num_slots > 0) {
    dn_terms = denoising_losses(at::stack(outputs.dn_class_logits), at::stack(outputs.dn_boxes),
                                denoising, loss_targets, code_weights, normalisers.dn_boxes);
  }
  TrainResult result;
  result.assignments = matcher.wait();
  result.terms = detection_losses(class_logits, boxes, result.assignments, loss_targets,
                                  code_weights, normalisers.boxes);
  result.terms.insert(result.terms.end(), dn_terms.begin(), dn_terms.end());
  if (denoising.num_slots == 0 && config.denoising.groups > 0 && options.has_denoising) {
    add_zero_denoising_terms(result.terms);
  }
  result.total = sum_of(result.terms);
  result.predictions = {class_logits.detach(), boxes.detach()};
  return result;
}

Predictions run_head(const Head& head, const HeadInput& input, const StageObserver& observer) {
  LayerOutputs outputs;
  head.forward(input, observer,
               [&](int /*layer*/, const LayerOutput& output) { outputs.add(output); });
  return {at::stack(outputs.class_logits), at::stack(outputs.boxes)};
}

}  // namespace hvd::petrv2
