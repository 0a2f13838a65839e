#include "training/petrv2/trainer/step_runner.h"

#include "training/petrv2/data/counter_rng.h"

namespace hvd::petrv2 {
namespace {

std::vector<at::Tensor> trainable(const Petrv2& model) {
  std::vector<at::Tensor> tensors;
  for (const NamedParameter& parameter : trainable_parameters(model)) {
    tensors.push_back(parameter.tensor);
  }
  return tensors;
}

std::vector<double> lr_factors(const Petrv2& model, double backbone_factor) {
  std::vector<double> factors;
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.is_trainable) factors.push_back(parameter.is_backbone ? backbone_factor : 1);
  }
  return factors;
}

Precision model_precision(TrainPrecision precision) {
  switch (precision) {
    case TrainPrecision::kBf16:
      return Precision::kBf16;
    case TrainPrecision::kFp16:
      return Precision::kFp16;
    case TrainPrecision::kFp64:
    case TrainPrecision::kFp32:
      return Precision::kFull;
  }
  return Precision::kFull;
}

std::optional<GridMaskDraw> draw_mask(const ModelConfig& config, CounterRng rng) {
  const std::array<double, 4> uniforms{rng.uniform(), rng.uniform(), rng.uniform(), rng.uniform()};
  return draw_grid_mask(config.image.height, config.grid_mask_probability, uniforms);
}

// (M, 3) in (-1, 1): three numbers for each denoising copy.
at::Tensor draw_noise(std::int64_t num_copies, CounterRng rng) {
  at::Tensor noise = at::empty({num_copies, 3}, at::kDouble);
  auto* value = noise.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < noise.numel(); ++i) value[i] = rng.uniform(-1, 1);
  return noise;
}

std::int64_t num_boxes(const Batch& batch) {
  std::int64_t count = 0;
  for (const Targets& targets : batch.targets) count += targets.labels.numel();
  return count;
}

}  // namespace

std::vector<NamedParameter> trainable_parameters(const Petrv2& model) {
  std::vector<NamedParameter> parameters;
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.is_trainable) parameters.push_back({parameter.name, parameter.tensor});
  }
  return parameters;
}

std::vector<std::string> step_value_names(const ModelConfig& config, bool has_denoising) {
  std::vector<std::string> names = {"total"};
  const bool is_denoising = has_denoising && config.denoising.groups > 0;
  for (const char* kind : {"loss_cls", "loss_box", "dn_loss_cls", "dn_loss_box"}) {
    if (std::string_view(kind).starts_with("dn_") && !is_denoising) continue;
    for (int layer = 0; layer < config.layers; ++layer) {
      const bool is_last = layer + 1 == config.layers;
      names.push_back(fmt::format("{}.{}", kind, is_last ? "last" : fmt::format("d{}", layer)));
    }
  }
  names.insert(names.end(), {"grad_norm", "skipped"});
  return names;
}

StepRunner::StepRunner(Petrv2& model, GradientSynchronizer& gradients, StepSpans& spans,
                       const TrainConfig& config, const TrainOptions& options)
    : model_(model),
      gradients_(gradients),
      spans_(spans),
      config_(config),
      options_(options),
      value_names_(step_value_names(model.config(), options.has_denoising)),
      optimiser_(trainable(model), lr_factors(model, config.backbone_lr_factor),
                 {config.betas, config.eps, config.weight_decay}),
      loss_scale_(model.parameters().front().tensor.device()) {}

ForwardOptions StepRunner::forward_options(const StepInputs& inputs, std::size_t index) const {
  const Batch& batch = inputs.micro_batches[index].rest;
  const std::uint64_t position = inputs.first_position + index * batch.targets.size();
  const auto rng = [&](DrawPurpose purpose) {
    return CounterRng(options_.seed, inputs.epoch, position, purpose);
  };
  at::manual_seed(rng(DrawPurpose::kDropout).next());
  ForwardOptions options;
  options.precision = model_precision(options_.precision);
  options.has_dropout = options_.has_dropout;
  options.has_denoising = options_.has_denoising;
  if (options_.has_augmentation) {
    options.grid_mask = draw_mask(model_.config(), rng(DrawPurpose::kGridMask));
  }
  const int groups = options_.has_denoising ? model_.config().denoising.groups : 0;
  if (groups > 0) {
    options.dn_noise = draw_noise(groups * num_boxes(batch), rng(DrawPurpose::kDenoising));
  }
  return options;
}

Result<at::Tensor> StepRunner::run_micro_batch(const StepInputs& inputs, std::size_t index,
                                               const AfterForward& after_forward) {
  spans_.begin("FORWARD");
  const Batch batch = on_device(inputs.micro_batches[index], model_);
  const TrainResult result =
      model_.forward_train(batch, inputs.normalisers, forward_options(inputs, index));
  if (index == 0) {
    const auto riders = after_forward();
    if (!riders) return tl::unexpected(riders.error());
    gradients_.set_riders(*riders);
  }
  at::Tensor loss = result.total / static_cast<double>(inputs.micro_batches.size());
  if (options_.precision == TrainPrecision::kFp16) loss = loss * loss_scale_.value();
  gradients_.set_accumulating(index + 1 < inputs.micro_batches.size());
  spans_.begin("BACKWARD");
  loss.backward();
  spans_.end();

  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> values;
  const at::Tensor zero = at::zeros_like(result.total.detach());
  for (std::size_t i = 0; i + 2 < value_names_.size(); ++i) {
    at::Tensor value = i == 0 ? result.total.detach() : zero;
    for (const auto& [name, term] : result.terms) {
      if (name == value_names_[i]) value = term.detach();
    }
    values.push_back(value.reshape({}));
  }
  return at::stack(values).to(at::kDouble);
}

Result<StepOutcome> StepRunner::run(const StepInputs& inputs, const AfterForward& after_forward) {
  at::Tensor values;
  for (std::size_t i = 0; i < inputs.micro_batches.size(); ++i) {
    const auto terms = run_micro_batch(inputs, i, after_forward);
    if (!terms) return tl::unexpected(terms.error());
    values = values.defined() ? values + *terms : *terms;
  }
  values = values / static_cast<double>(inputs.micro_batches.size());
  if (auto done = gradients_.finish(); !done) return tl::unexpected(done.error());
  spans_.begin("OPTIMIZER");
  const bool is_scaled = options_.precision == TrainPrecision::kFp16;
  const ClipResult clipped = clip(gradients_.flat_gradients(), config_.clip_norm,
                                  is_scaled ? loss_scale_.inverse() : at::Tensor());
  optimiser_.step(gradients_.gradients(), inputs.lr, clipped.found_inf);
  if (is_scaled) loss_scale_.update(clipped.found_inf);
  StepOutcome outcome;
  outcome.values = at::cat({values, clipped.norm.to(at::kDouble).reshape({1}),
                            clipped.found_inf.to(at::kDouble).reshape({1})});
  outcome.riders = gradients_.riders().to(at::kDouble);
  gradients_.reset();
  spans_.end();
  return outcome;
}

}  // namespace hvd::petrv2
