// The transformer decoder: queries look at each other and at the image tokens.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "training/petrv2/config.h"
#include "training/petrv2/model/layers.h"
#include "training/torch.h"

namespace hvd::petrv2 {

// Multi-head attention with a packed in-projection.
class Attention {
 public:
  Attention(ParameterSet& set, const std::string& name, int embed, int heads);

  // query (B, L, E), key and value (B, T, E) -> (B, L, E). mask: undefined, or (L, T) bool, true
  // where a query may look. dropout is on the probabilities.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value, const at::Tensor& mask,
                                      double dropout) const;

 private:
  [[nodiscard]] at::Tensor project(const at::Tensor& x, int third) const;

  const int heads_;
  const at::Tensor in_weight_;  // (3 E, E): query, key, value
  const at::Tensor in_bias_;
  const Linear out_;
};

struct DecoderInput {
  at::Tensor query_position;  // (B, L, E)
  at::Tensor memory;          // (B, T, E) image tokens
  at::Tensor key;             // (B, T, E) the same plus their position
  at::Tensor mask;            // undefined, or (L, L) bool: which queries may look at which
};

class DecoderLayer {
 public:
  DecoderLayer(const ModelConfig& config, ParameterSet& set, const std::string& name);

  // content (B, L, E) -> (B, L, E).
  [[nodiscard]] at::Tensor operator()(const at::Tensor& content, const DecoderInput& input,
                                      bool has_dropout) const;

 private:
  const double dropout_;
  const double cross_attention_dropout_;
  const Attention self_attention_, cross_attention_;
  const Linear up_, down_;
  const LayerNorm norm1_, norm2_, norm3_;
};

class Decoder {
 public:
  // Called as soon as a layer has run: its output (B, L, E) after the common last norm.
  using OnLayer = std::function<void(int layer, const at::Tensor& output)>;

  Decoder(const ModelConfig& config, ParameterSet& set);

  void forward(const DecoderInput& input, bool has_dropout, const OnLayer& on_layer) const;

 private:
  [[nodiscard]] at::Tensor run(const DecoderLayer& layer, const at::Tensor& content,
                               const DecoderInput& input, bool has_dropout) const;

  const bool has_checkpoints_;
  const std::vector<DecoderLayer> layers_;
  const LayerNorm post_norm_;
};

}  // namespace hvd::petrv2
