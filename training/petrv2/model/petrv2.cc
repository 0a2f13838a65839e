#include "training/petrv2/model/petrv2.h"

#include <algorithm>
#include <boost/asio/thread_pool.hpp>
#include <thread>

#include "training/petrv2/model/autocast.h"
#include "training/petrv2/model/backbone.h"
#include "training/petrv2/model/head.h"
#include "training/petrv2/model/head_training.h"
#include "training/petrv2/model/layers.h"
#include "training/petrv2/model/neck.h"
#include "training/petrv2/model/parameter_table.h"
#include "training/petrv2/model/upload.h"

namespace hvd::petrv2 {
namespace {

constexpr unsigned kMaxSolverThreads = 4;

std::unique_ptr<Backbone> make_backbone(const BackboneConfig& config, ParameterSet& set) {
  return config.kind == BackboneKind::kVovNet ? make_vovnet(config, set) : make_resnet(config, set);
}

std::optional<at::ScalarType> autocast_type(Precision precision) {
  if (precision == Precision::kBf16) return at::kBFloat16;
  if (precision == Precision::kFp16) return at::kHalf;
  return std::nullopt;
}

at::Tensor apply_grid_mask(const at::Tensor& image, const std::optional<GridMaskDraw>& draw) {
  if (!draw) return image;
  const std::int64_t height = image.size(-2), width = image.size(-1);
  std::vector<std::uint8_t> mask =
      grid_mask(static_cast<int>(height), static_cast<int>(width), *draw);
  const at::Tensor on_host = at::from_blob(mask.data(), {height, width}, at::kByte);
  return image * upload(on_host, image.options());
}

}  // namespace

struct Petrv2::Parts {
  Parts(const ModelConfig& model, at::Device device, at::ScalarType type)
      : config(model),
        tensors(device, type),
        backbone(make_backbone(model.backbone, tensors)),
        neck(model.feature == FeatureLevel::kP4
                 ? std::make_unique<Neck>(tensors, backbone->c4_channels(), backbone->c5_channels(),
                                          model.embed)
                 : nullptr),
        head(model, neck ? model.embed : backbone->c5_channels(), tensors),
        pool(std::clamp(std::thread::hardware_concurrency(), 1U, kMaxSolverThreads)) {}

  // (B * 12, C, h, w) in the weights' type.
  at::Tensor features(const Batch& batch, const ForwardOptions& options) const {
    const at::Tensor image = apply_grid_mask(batch.image, options.grid_mask).flatten(0, 1);
    const AutocastGuard precision(image.device().type(), autocast_type(options.precision));
    const BackboneFeatures levels = backbone->forward(image, options.observer);
    const at::Tensor feature = neck ? neck->forward(levels, options.observer) : levels.c5;
    return feature.to(image.scalar_type());
  }

  const ModelConfig config;
  ParameterSet tensors;
  const std::unique_ptr<Backbone> backbone;
  const std::unique_ptr<Neck> neck;  // null for C5
  const Head head;
  boost::asio::thread_pool pool;
};

Petrv2::Petrv2(const ModelConfig& config, at::Device device, at::ScalarType type,
               std::uint64_t seed)
    : parts_(std::make_unique<Parts>(config, device, type)) {
  parts_->tensors.initialise(seed);
}

Petrv2::~Petrv2() = default;

const ModelConfig& Petrv2::config() const { return parts_->config; }
const std::vector<Parameter>& Petrv2::parameters() const { return parts_->tensors.parameters(); }
const std::vector<Parameter>& Petrv2::buffers() const { return parts_->tensors.buffers(); }
const ParameterSet& Petrv2::tensors() const { return parts_->tensors; }

void Petrv2::use_channels_last() {
  const at::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters()) {
    if (parameter.tensor.dim() != 4) continue;
    parameter.tensor.set_data(parameter.tensor.contiguous(at::MemoryFormat::ChannelsLast));
  }
}

at::Tensor Petrv2::normalise(const at::Tensor& images) const {
  const ImageConfig& image = parts_->config.image;
  const at::TensorOptions options = parts_->head.code_weights().options();
  const auto per_channel = [&options](const std::array<double, 3>& values) {
    return upload(at::tensor(at::ArrayRef<double>(values), at::kDouble), options).view({3, 1, 1});
  };
  // Channels are innermost in memory and stay so: the result is channels-last.
  at::Tensor pixels = upload(images, options.device()).permute({0, 1, 4, 2, 3});
  if (image.is_bgr) pixels = pixels.flip(2);
  return (pixels.to(options) - per_channel(image.mean)) / per_channel(image.std);
}

TrainResult Petrv2::forward_train(const Batch& batch, const Normalisers& normalisers,
                                  const ForwardOptions& options) {
  const HeadInput input{parts_->features(batch, options), batch.lidar2img, batch.time_delta,
                        nullptr, options.has_dropout};
  return train_head(parts_->head, input, batch.targets, normalisers, options, parts_->pool);
}

Predictions Petrv2::predict(const Batch& batch, const ForwardOptions& options) {
  const at::NoGradGuard no_grad;
  ForwardOptions plain = options;
  plain.grid_mask.reset();
  const HeadInput input{parts_->features(batch, plain), batch.lidar2img, batch.time_delta, nullptr,
                        /*has_dropout=*/false};
  return run_head(parts_->head, input, options.observer);
}

Normalisers count_positives(const ModelConfig& config, const std::vector<std::int64_t>& num_boxes) {
  Normalisers counts{0, 0};
  for (const std::int64_t count : num_boxes) {
    counts.boxes += static_cast<double>(std::min<std::int64_t>(count, config.queries));
    counts.dn_boxes += static_cast<double>(config.denoising.groups * count);
  }
  return counts;
}

std::vector<TableRow> list_tensors(const ModelConfig& config) {
  const Petrv2 model(config, at::kMeta, at::kFloat, 0);
  std::vector<TableRow> rows;
  for (const Parameter& parameter : model.parameters()) {
    rows.push_back({parameter.name, parameter.tensor.sizes().vec(), parameter.is_trainable});
  }
  return rows;
}

}  // namespace hvd::petrv2
