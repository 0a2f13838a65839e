// Configurations of the model and of its training, read from YAML. The files of training/configs
// are part of the program and are known by their names; any other file is read by its path. A key
// that is not known, or a value that cannot be, is an error with file and line. Torch-free.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::petrv2 {

constexpr int kNumClasses = 10;
constexpr int kCodeSize = 10;  // cx cy log(w) log(l) cz log(h) sin cos vx vy

enum class BackboneKind { kResNet, kVovNet };
enum class ResNetStyle { kPytorch, kCaffe };  // stride 2 in the 3x3, or in the first 1x1
enum class FeatureLevel { kP4, kC5 };  // stride 16 through the neck, or stride 32 without one
enum class MatcherKind { kPlain, kWeighted };  // 8 dimensions; or all 10 times the code weights

struct BackboneConfig {
  BackboneKind kind = BackboneKind::kResNet;
  int depth = 50;  // ResNet: 18, 50 or 101; VoVNetV2: 99
  ResNetStyle style = ResNetStyle::kPytorch;
  int base_width = 64;              // ResNet: channels of the stem; stage s has base_width << s
  bool has_trainable_norm = false;  // scale and shift of the batch norms; statistics never train
  bool has_checkpoints = true;      // recompute each block in the backward pass
};

struct ImageConfig {
  int height = 256, width = 704;        // px, multiples of 32
  bool is_bgr = false;                  // the network's channel order; samples are RGB
  std::array<double, 3> mean{}, std{};  // in the network's channel order
};

struct DenoisingConfig {
  int groups = 0;  // 0: no denoising queries
  double noise_scale = 1.0;
  double split = 0.75;  // a copy moved further than this becomes background
};

struct ModelConfig {
  BackboneConfig backbone;
  FeatureLevel feature = FeatureLevel::kP4;
  ImageConfig image;
  int embed = 256;  // channels of neck and head, a multiple of 4 and of heads
  int heads = 8;
  int layers = 6;
  int ffn = 2048;
  int queries = 900;
  int depth_bins = 64;
  bool has_sine = true;  // sine embedding of view, row and column with its adapter
  double dropout = 0.1;
  double cross_attention_dropout = 0.1;  // on the attention probabilities only
  double grid_mask_probability = 0.7;    // 0: no GridMask
  DenoisingConfig denoising;
  std::array<double, kCodeSize> code_weights{1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  MatcherKind matcher = MatcherKind::kPlain;
  bool has_decoder_checkpoints = true;  // recompute each decoder layer in the backward pass

  [[nodiscard]] int stride() const { return feature == FeatureLevel::kP4 ? 16 : 32; }
  [[nodiscard]] int feature_height() const { return image.height / stride(); }
  [[nodiscard]] int feature_width() const { return image.width / stride(); }
};

struct TrainConfig {
  double lr = 2e-4;  // at reference_batch samples a step
  double backbone_lr_factor = 0.1;
  double weight_decay = 0.01;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  int epochs = 24;
  int warmup_iterations = 500;
  double warmup_ratio = 1.0 / 3;
  double min_lr_ratio = 1e-3;
  double clip_norm = 35;
  int reference_batch = 8;  // samples a step, all ranks and micro-batches together
  int batch_per_rank = 1;
  std::array<double, 2> resize_range{0.386, 0.55};        // of a 1600x900 image
  std::array<double, 2> rotation_range{-0.3925, 0.3925};  // rad, about the lidar's z
  std::array<double, 2> scale_range{0.95, 1.05};
  double flip_probability = 0.5;
};

struct Config {
  std::string name;  // of the file, without folder and .yaml
  std::string yaml;  // as it was read
  ModelConfig model;
  TrainConfig train;
};

// The names of the configurations in the program, in a fixed order.
[[nodiscard]] std::vector<std::string> builtin_config_names();

// A built-in name, or the path of a YAML file (a word with a '/' or the ending .yaml).
[[nodiscard]] Result<Config> load_config(const std::string& name_or_path);

// file is only named in errors.
[[nodiscard]] Result<Config> parse_config(std::string_view yaml, const std::string& file);

}  // namespace hvd::petrv2
