// ResNet of depth 18, 50 or 101, with the stride of a stage in the 3x3 (pytorch) or in the first
// 1x1 (caffe) of its first block.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/petrv2/model/backbone.h"
#include "training/petrv2/model/checkpoint.h"
#include "training/petrv2/model/layers.h"

namespace hvd::petrv2 {
namespace {

constexpr int kNumStages = 4;

std::array<int, kNumStages> blocks_per_stage(int depth) {
  if (depth == 18) return {2, 2, 2, 2};
  if (depth == 101) return {3, 4, 23, 3};
  return {3, 4, 6, 3};
}

struct BlockShape {
  int in = 0, width = 0, out = 0;
  int stride = 1;
};

// The convolutions of one branch: basic 3x3, 3x3; bottleneck 1x1, 3x3, 1x1.
std::vector<ConvShape> branch_shapes(const BackboneConfig& config, const BlockShape& block) {
  if (config.depth == 18) {
    return {{block.in, block.out, 3, block.stride}, {block.out, block.out, 3, 1}};
  }
  const bool is_caffe = config.style == ResNetStyle::kCaffe;
  return {{block.in, block.width, 1, is_caffe ? block.stride : 1},
          {block.width, block.width, 3, is_caffe ? 1 : block.stride},
          {block.width, block.out, 1, 1}};
}

class ResidualBlock {
 public:
  ResidualBlock(const BackboneConfig& config, ParameterSet& set, const std::string& name,
                const BlockShape& block) {
    const std::vector<ConvShape> shapes = branch_shapes(config, block);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const bool is_last = i + 1 == shapes.size();
      branch_.emplace_back(
          set, fmt::format("{}.conv{}", name, i + 1), fmt::format("{}.bn{}", name, i + 1),
          shapes[i], config.has_trainable_norm, TensorRole::kKaimingConvWeight,
          is_last ? TensorRole::kResidualNormWeight : TensorRole::kBatchNormWeight);
    }
    if (block.stride != 1 || block.in != block.out) {
      shortcut_.emplace(set, name + ".downsample.0", name + ".downsample.1",
                        ConvShape{block.in, block.out, 1, block.stride}, config.has_trainable_norm,
                        TensorRole::kKaimingConvWeight);
    }
  }

  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor y = x;
    for (std::size_t i = 0; i + 1 < branch_.size(); ++i) y = branch_[i](y).relu_();
    y = branch_.back()(y);
    return (y + (shortcut_ ? (*shortcut_)(x) : x)).relu_();
  }

 private:
  std::vector<ConvNorm> branch_;
  std::optional<ConvNorm> shortcut_;
};

class ResNet : public Backbone {
 public:
  ResNet(const BackboneConfig& config, ParameterSet& set)
      : has_checkpoints_(config.has_checkpoints),
        expansion_(config.depth == 18 ? 1 : 4),
        base_width_(config.base_width),
        stem_(set, "img_backbone.conv1", "img_backbone.bn1", {3, config.base_width, 7, 2},
              config.has_trainable_norm, TensorRole::kKaimingConvWeight) {
    int in = config.base_width;
    for (int stage = 0; stage < kNumStages; ++stage) in = add_stage(config, set, stage, in);
  }

  [[nodiscard]] BackboneFeatures forward(const at::Tensor& image,
                                         const BackboneObserver& observer) const override {
    at::Tensor x = at::max_pool2d(stem_(image).relu_(), {3, 3}, {2, 2}, {1, 1});
    if (observer) observer("stem", x);
    BackboneFeatures features;
    for (int stage = 0; stage < kNumStages; ++stage) {
      for (const ResidualBlock& block : stages_[stage]) x = run(block, x);
      if (observer) observer(fmt::format("layer{}", stage + 1), x);
      if (stage == kNumStages - 2) features.c4 = x;
    }
    features.c5 = x;
    return features;
  }

  [[nodiscard]] int c4_channels() const override { return 4 * base_width_ * expansion_; }
  [[nodiscard]] int c5_channels() const override { return 8 * base_width_ * expansion_; }

 private:
  // The number of channels after the stage.
  int add_stage(const BackboneConfig& config, ParameterSet& set, int stage, int in) {
    const int width = base_width_ << stage;
    const int count = blocks_per_stage(config.depth)[stage];
    for (int block = 0; block < count; ++block) {
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      stages_[stage].emplace_back(config, set,
                                  fmt::format("img_backbone.layer{}.{}", stage + 1, block),
                                  BlockShape{in, width, width * expansion_, stride});
      in = width * expansion_;
    }
    return in;
  }

  [[nodiscard]] at::Tensor run(const ResidualBlock& block, const at::Tensor& x) const {
    if (!has_checkpoints_) return block(x);
    return checkpoint([&block](const auto& inputs) { return block(inputs[0]); }, {x},
                      BlockRandomness::kNone);
  }

  const bool has_checkpoints_;
  const int expansion_;
  const int base_width_;
  const ConvNorm stem_;
  std::array<std::vector<ResidualBlock>, kNumStages> stages_;
};

}  // namespace

std::unique_ptr<Backbone> make_resnet(const BackboneConfig& config, ParameterSet& set) {
  return std::make_unique<ResNet>(config, set);
}

}  // namespace hvd::petrv2
