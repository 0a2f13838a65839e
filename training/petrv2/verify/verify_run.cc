#include "training/petrv2/verify/verify_run.h"

#include <fstream>

#include "training/petrv2/model/petrv2.h"
#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"
#include "training/petrv2/optim/schedule.h"
#include "training/petrv2/verify/filler.h"
#include "training/petrv2/verify/scene.h"

namespace hvd::petrv2 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kEndsShown = 16;
constexpr double kBaseRate = 2e-4;
constexpr double kBackboneFactor = 0.1;

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  const auto* begin = flat.const_data_ptr<double>();
  return {begin, begin + flat.numel()};
}

Json summary(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).flatten();
  const std::int64_t count = flat.size(0), ends = std::min(count, kEndsShown);
  return {{"shape", tensor.sizes().vec()},
          {"n", count},
          {"mean", flat.mean().item<double>()},
          {"abs_mean", flat.abs().mean().item<double>()},
          {"l2", flat.norm().item<double>()},
          {"first", values_of(flat.slice(0, 0, ends))},
          {"last", values_of(flat.slice(0, count - ends, count))}};
}

// {boxes: [[9 numbers]], labels: [0..9]}
Result<Targets> parse_targets(const std::string& path, const Json& json) {
  std::vector<double> values;
  std::vector<std::int64_t> labels;
  try {
    labels = json.at("labels").get<std::vector<std::int64_t>>();
    for (const Json& box : json.at("boxes")) {
      const auto numbers = box.get<std::vector<double>>();
      if (numbers.size() != 9) return make_error("{}: a box has not 9 numbers", path);
      values.insert(values.end(), numbers.begin(), numbers.end());
    }
  } catch (const Json::exception& problem) {
    return make_error("{}: {}", path, problem.what());
  }
  const bool is_known = std::all_of(labels.begin(), labels.end(), [](std::int64_t label) {
    return label >= 0 && label < kNumClasses;
  });
  if (values.size() != 9 * labels.size() || !is_known) {
    return make_error("{}: each box needs one label from 0 to {}", path, kNumClasses - 1);
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  return Targets{at::tensor(values, at::kDouble).view({count, 9}), at::tensor(labels, at::kLong)};
}

Result<Targets> read_targets(const std::string& path) {
  if (path.empty()) return scene_targets();
  std::ifstream file(path);
  if (!file) return make_error("cannot read the boxes of {}", path);
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return make_error("{} is not JSON", path);
  return parse_targets(path, json);
}

ModelConfig model_of(const Config& config, const VerifyOptions& options) {
  ModelConfig model = config.model;
  if (options.height > 0) {
    model.image.height = options.height;
    model.image.width = options.width;
  }
  if (options.queries > 0) model.queries = options.queries;
  return model;
}

// Restores libtorch's global switches.
class Tf32Guard {
 public:
  explicit Tf32Guard(bool is_allowed)
      : old_cublas_(at::globalContext().allowTF32CuBLAS()),
        old_cudnn_(at::globalContext().allowTF32CuDNN()) {
    set(is_allowed, is_allowed);
  }
  ~Tf32Guard() { set(old_cublas_, old_cudnn_); }
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;

 private:
  static void set(bool cublas, bool cudnn) {
    at::globalContext().setAllowTF32CuBLAS(cublas);
    at::globalContext().setAllowTF32CuDNN(cudnn);
  }
  const bool old_cublas_, old_cudnn_;
};

Precision precision_of(const VerifyOptions& options) {
  if (options.precision == VerifyPrecision::kBf16) return Precision::kBf16;
  if (options.precision == VerifyPrecision::kFp16) return Precision::kFp16;
  return Precision::kFull;
}

Batch make_batch(const ModelConfig& model, const Targets& targets, int num_samples,
                 const at::TensorOptions& options) {
  const int height = model.image.height, width = model.image.width;
  Batch batch;
  batch.image = filled(kImageNumber, {num_samples, kNumViews, 3, height, width}).to(options);
  batch.lidar2img = scene_cameras(num_samples, height, width);
  batch.time_delta = at::full({num_samples}, kSceneTimeDelta, at::kDouble);
  batch.targets.assign(num_samples, targets);
  return batch;
}

// Means over ranks and micro-batches: here there is one of each.
Normalisers normalisers_of(const ModelConfig& model, const Batch& batch) {
  std::vector<std::int64_t> num_boxes;
  for (const Targets& targets : batch.targets) num_boxes.push_back(targets.boxes.size(0));
  return count_positives(model, num_boxes);
}

Json losses_of(const TrainResult& result) {
  Json losses;
  for (const auto& [name, value] : result.terms) losses[name] = value.item<double>();
  losses["total"] = result.total.item<double>();
  return losses;
}

Json assignments_of(const LayerAssignments& assignments) {
  Json layers = Json::array();
  for (const auto& samples : assignments) {
    Json layer = Json::array();
    for (const Assignment& pairs : samples) {
      Json sample = Json::array();
      for (const auto& [query, box] : pairs) sample.push_back({query, box});
      layer.push_back(sample);
    }
    layers.push_back(layer);
  }
  return layers;
}

Json decoded_of(const Predictions& predictions) {
  Json samples = Json::array();
  for (const DecodedBoxes& decoded : Petrv2::decode(predictions)) {
    Json boxes = Json::array();
    for (std::int64_t i = 0; i < decoded.boxes.size(0); ++i) {
      boxes.push_back(values_of(decoded.boxes[i]));
    }
    samples.push_back({{"boxes", boxes},
                       {"scores", values_of(decoded.scores)},
                       {"labels", values_of(decoded.labels)}});
  }
  return samples;
}

// Steps the trainable parameters once; their gradients and new values go into `parameters`.
// Returns the norm of all gradients.
double step_once(const Petrv2& model, Json& parameters) {
  std::vector<at::Tensor> trainable;
  std::vector<at::Tensor> gradients;  // with their parameters' strides
  std::vector<double> factors;
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.is_trainable) continue;
    trainable.push_back(parameter.tensor);
    factors.push_back(parameter.is_backbone ? kBackboneFactor : 1);
    gradients.push_back(at::zeros_like(parameter.tensor.detach()));
    const at::Tensor& gradient = parameter.tensor.grad();
    if (!gradient.defined()) continue;
    gradients.back().copy_(gradient);
    parameters[parameter.name]["grad"] = summary(gradient);
  }
  const TrainConfig train;  // of every released configuration
  const ClipResult clipped = clip(gradients, train.clip_norm);
  AdamW optimiser(trainable, factors, {train.betas, train.eps, train.weight_decay});
  const Schedule schedule{train.epochs, train.warmup_iterations, train.warmup_ratio,
                          train.min_lr_ratio, static_cast<std::uint64_t>(train.reference_batch)};
  optimiser.step(gradients, schedule.rate(kBaseRate, /*epoch=*/0, /*samples_seen=*/0),
                 clipped.found_inf);
  for (const Parameter& parameter : model.parameters()) {
    parameters[parameter.name]["after_step"] = summary(parameter.tensor);
  }
  return clipped.norm.item<double>();
}

Json describe(const Config& config, const ModelConfig& model, const VerifyOptions& options) {
  return {{"config", config.name},      {"height", model.image.height},
          {"width", model.image.width}, {"queries", model.queries},
          {"batch", options.batch},     {"bn3_scale", options.bn3_scale},
          {"device", options.device},   {"precision", precision_name(options.precision)}};
}

}  // namespace

Result<nlohmann::ordered_json> run_configuration(const Config& config,
                                                 const VerifyOptions& options) {
  const auto targets = read_targets(options.boxes);
  if (!targets) return tl::unexpected(targets.error());
  if (options.device != "cpu" && !at::hasCUDA()) {
    return make_error(ExitCode::kUsage, "--device {}: no GPU is visible here; use --device cpu",
                      options.device);
  }
  const Tf32Guard tf32(options.precision == VerifyPrecision::kTf32);
  const bool is_fp64 = options.precision == VerifyPrecision::kFp64;
  const at::Device device(options.device);
  const at::ScalarType type = is_fp64 ? at::kDouble : at::kFloat;
  const ModelConfig model_config = model_of(config, options);
  Petrv2 model(model_config, device, type, /*seed=*/0);
  fill_tensors(model.tensors(), options.bn3_scale);
  const Batch batch =
      make_batch(model_config, *targets, options.batch, at::device(device).dtype(type));
  Json report = describe(config, model_config, options);
  ForwardOptions forward;
  forward.precision = precision_of(options);
  forward.has_dropout = false;
  forward.dn_noise =
      scene_noise(model_config.denoising.groups * targets->boxes.size(0) * options.batch);
  forward.observer = [&report](std::string_view stage, const at::Tensor& value) {
    report["stages"][std::string(stage)] = summary(value);
  };
  const TrainResult result =
      model.forward_train(batch, normalisers_of(model_config, batch), forward);
  result.total.backward();
  report["losses"] = losses_of(result);
  report["assignments"] = assignments_of(result.assignments);
  report["decoded"] = decoded_of(result.predictions);
  Json parameters;
  report["grad_norm"] = step_once(model, parameters);
  report["parameters"] = std::move(parameters);
  return report;
}

}  // namespace hvd::petrv2
