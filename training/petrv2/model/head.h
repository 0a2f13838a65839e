// The detection head: image tokens with their 3D positions, anchors as queries, decoder, and per
// layer the class and box branches.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "training/petrv2/config.h"
#include "training/petrv2/model/decoder.h"
#include "training/petrv2/model/denoising.h"
#include "training/petrv2/model/forward.h"
#include "training/petrv2/model/layers.h"
#include "training/petrv2/model/position.h"
#include "training/torch.h"

namespace hvd::petrv2 {

class ClassBranch {
 public:
  ClassBranch(ParameterSet& set, const std::string& name, int embed);
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;  // (..., E) -> (..., 10)

 private:
  Linear first_;
  LayerNorm norm1_;
  Linear second_;
  LayerNorm norm2_;
  Linear last_;
};

class BoxBranch {
 public:
  BoxBranch(ParameterSet& set, const std::string& name, int embed);
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;  // (..., E) -> (..., 10)

 private:
  struct TaskHead {
    Linear first, last;
  };
  Linear first_, second_;
  std::vector<TaskHead> heads_;
};

// Raw regression, anchors and time -> boxes (cx cy log(w) log(l) cz log(h) sin cos vx vy), (B, n,
// 10). Anchors (B or 1, n, 3) in 0..1 of the point-cloud range; time_delta (B), s.
[[nodiscard]] at::Tensor boxes_from_raw(const at::Tensor& raw, const at::Tensor& anchors,
                                        const at::Tensor& time_delta);

struct HeadInput {
  at::Tensor feature;     // (B * 12, C, h, w), in the weights' type
  at::Tensor lidar2img;   // (B, 12, 4, 4) fp64, CPU
  at::Tensor time_delta;  // (B) fp64, CPU
  const DenoisingQueries* denoising = nullptr;
  bool has_dropout = false;
};

// One decoder layer's results; dn_*: of the denoising slots, undefined without them.
struct LayerOutput {
  at::Tensor class_logits, boxes;        // (B, Q, 10)
  at::Tensor dn_class_logits, dn_boxes;  // (B, slots, 10)
};

class Head {
 public:
  using OnLayer = std::function<void(int layer, const LayerOutput& output)>;

  Head(const ModelConfig& config, int in_channels, ParameterSet& set);

  void forward(const HeadInput& input, const StageObserver& observer,
               const OnLayer& on_layer) const;

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const at::Tensor& code_weights() const { return code_weights_; }

 private:
  struct Tokens {
    at::Tensor memory;    // (B, T, E)
    at::Tensor position;  // (B, T, E)
  };
  struct Mlp {
    TokenConv first, second;
    [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
      return second(first(x).relu_());
    }
  };

  [[nodiscard]] Tokens make_tokens(const HeadInput& input, const StageObserver& observer) const;
  [[nodiscard]] at::Tensor position_3d(const HeadInput& input, const FeatureGrid& grid,
                                       const StageObserver& observer) const;
  [[nodiscard]] at::Tensor sine_position(std::int64_t num_samples, const FeatureGrid& grid,
                                         const StageObserver& observer) const;
  [[nodiscard]] at::Tensor anchors_of(const HeadInput& input) const;
  [[nodiscard]] LayerOutput run_branches(int layer, at::Tensor output, const at::Tensor& anchors,
                                         const at::Tensor& time_delta, int num_slots,
                                         const StageObserver& observer) const;

  const ModelConfig config_;
  const TokenConv projection_;
  const Mlp position_encoder_, gate_;
  const std::optional<Mlp> adapter_;
  const at::Tensor anchors_;  // (Q, 3)
  const Linear query_first_, query_second_;
  const Decoder decoder_;
  const std::vector<ClassBranch> class_branches_;
  const std::vector<BoxBranch> box_branches_;
  const at::Tensor code_weights_;  // (10)
  mutable at::Tensor sine_;        // (12 * h * w, 3 * E / 2) of sine_grid_, made once
  mutable FeatureGrid sine_grid_;
};

}  // namespace hvd::petrv2
