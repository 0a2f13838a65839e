// VoVNetV2-99: stages of one-shot aggregation (OSA) blocks, each with a squeeze-and-excitation
// gate.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "training/petrv2/model/backbone.h"
#include "training/petrv2/model/checkpoint.h"
#include "training/petrv2/model/layers.h"

namespace hvd::petrv2 {
namespace {

constexpr int kConvsPerBlock = 5;
constexpr int kStemChannels = 128;

struct StageShape {
  int blocks, width, out;
};
constexpr std::array<StageShape, 4> kStages{
    {{1, 128, 256}, {3, 160, 512}, {9, 192, 768}, {3, 224, 1024}}};

ConvNorm make_conv(const BackboneConfig& config, ParameterSet& set, const std::string& name,
                   const ConvShape& shape) {
  return {set,
          name + "/conv",
          name + "/norm",
          shape,
          config.has_trainable_norm,
          TensorRole::kConvWeight};
}

class OsaBlock {
 public:
  // stage from 2, block from 1.
  OsaBlock(const BackboneConfig& config, ParameterSet& set, int stage, int block, int in)
      : is_first_(block == 1),
        name_(fmt::format("OSA{}_{}", stage, block)),
        convs_(make_convs(config, set, stage, in)),
        concat_(make_conv(
            config, set, fmt::format("{}.concat.{}_concat", path(stage), name_),
            {in + kConvsPerBlock * kStages[stage - 2].width, kStages[stage - 2].out, 1, 1})),
        gate_(set, path(stage) + ".ese.fc", kStages[stage - 2].out, kStages[stage - 2].out) {}

  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    std::vector<at::Tensor> outputs{x};
    for (const ConvNorm& conv : convs_) outputs.push_back(conv(outputs.back()).relu_());
    const at::Tensor y = concat_(at::cat(outputs, 1)).relu_();
    const at::Tensor mean = y.mean({2, 3}, true);
    const at::Tensor gated = y * (at::relu6(at::conv2d(mean, gate_.weight, gate_.bias) + 3) / 6);
    return is_first_ ? gated : gated + x;
  }

 private:
  [[nodiscard]] std::string path(int stage) const {
    return fmt::format("img_backbone.stage{}.{}", stage, name_);
  }

  [[nodiscard]] std::vector<ConvNorm> make_convs(const BackboneConfig& config, ParameterSet& set,
                                                 int stage, int in) const {
    const int width = kStages[stage - 2].width;
    std::vector<ConvNorm> convs;
    for (int i = 0; i < kConvsPerBlock; ++i) {
      convs.push_back(make_conv(config, set,
                                fmt::format("{}.layers.{}.{}_{}", path(stage), i, name_, i),
                                {i == 0 ? in : width, width, 3, 1}));
    }
    return convs;
  }

  bool is_first_;  // of its stage: without the identity
  std::string name_;
  std::vector<ConvNorm> convs_;
  ConvNorm concat_;
  TokenConv gate_;  // (out, out, 1, 1)
};

class VovNet : public Backbone {
 public:
  VovNet(const BackboneConfig& config, ParameterSet& set)
      : has_checkpoints_(config.has_checkpoints) {
    const std::array<ConvShape, 3> shapes{
        {{3, 64, 3, 2}, {64, 64, 3, 1}, {64, kStemChannels, 3, 2}}};
    for (int i = 0; i < 3; ++i) {
      stem_.push_back(
          make_conv(config, set, fmt::format("img_backbone.stem.stem_{}", i + 1), shapes[i]));
    }
    int in = kStemChannels;
    for (int stage = 2; stage <= 5; ++stage) {
      for (int block = 1; block <= kStages[stage - 2].blocks; ++block) {
        stages_[stage - 2].emplace_back(config, set, stage, block, in);
        in = kStages[stage - 2].out;
      }
    }
  }

  [[nodiscard]] BackboneFeatures forward(const at::Tensor& image,
                                         const BackboneObserver& observer) const override {
    at::Tensor x = image;
    for (const ConvNorm& conv : stem_) x = conv(x).relu_();
    if (observer) observer("stem", x);
    BackboneFeatures features;
    for (int stage = 2; stage <= 5; ++stage) {
      if (stage > 2) x = at::max_pool2d(x, {3, 3}, {2, 2}, {0, 0}, {1, 1}, /*ceil_mode=*/true);
      for (const OsaBlock& block : stages_[stage - 2]) x = run(block, x);
      if (observer) observer(fmt::format("stage{}", stage), x);
      if (stage == 4) features.c4 = x;
    }
    features.c5 = x;
    return features;
  }

  [[nodiscard]] int c4_channels() const override { return kStages[2].out; }
  [[nodiscard]] int c5_channels() const override { return kStages[3].out; }

 private:
  [[nodiscard]] at::Tensor run(const OsaBlock& block, const at::Tensor& x) const {
    if (!has_checkpoints_) return block(x);
    return checkpoint([&block](const auto& inputs) { return block(inputs[0]); }, {x},
                      BlockRandomness::kNone);
  }

  const bool has_checkpoints_;
  std::vector<ConvNorm> stem_;
  std::array<std::vector<OsaBlock>, 4> stages_;
};

}  // namespace

std::unique_ptr<Backbone> make_vovnet(const BackboneConfig& config, ParameterSet& set) {
  return std::make_unique<VovNet>(config, set);
}

}  // namespace hvd::petrv2
