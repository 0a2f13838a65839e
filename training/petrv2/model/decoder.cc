#include "training/petrv2/model/decoder.h"

#include <fmt/format.h>

#include "training/petrv2/model/checkpoint.h"

namespace hvd::petrv2 {
namespace {

constexpr TensorRole kWeight = TensorRole::kAttentionWeight;
constexpr TensorRole kBias = TensorRole::kAttentionBias;
constexpr const char* kDecoderName = "pts_bbox_head.transformer.decoder";

at::Tensor drop(const at::Tensor& x, double probability) {
  return probability > 0 ? at::dropout(x, probability, /*train=*/true) : x;
}

std::vector<DecoderLayer> make_layers(const ModelConfig& config, ParameterSet& set) {
  std::vector<DecoderLayer> layers;
  for (int layer = 0; layer < config.layers; ++layer) {
    layers.emplace_back(config, set, fmt::format("{}.layers.{}", kDecoderName, layer));
  }
  return layers;
}

}  // namespace

Attention::Attention(ParameterSet& set, const std::string& name, int embed, int heads)
    : heads_(heads),
      in_weight_(set.add(name + ".attn.in_proj_weight", {3 * embed, embed}, kWeight)),
      in_bias_(set.add(name + ".attn.in_proj_bias", {3 * embed}, kBias)),
      out_(set, name + ".attn.out_proj", embed, embed, kWeight, kBias) {}

// (B, n, E) -> (B, heads, n, E / heads); third: 0 query, 1 key, 2 value.
at::Tensor Attention::project(const at::Tensor& x, int third) const {
  const std::int64_t embed = in_weight_.size(1);
  const at::Tensor y = at::linear(x, in_weight_.narrow(0, third * embed, embed),
                                  in_bias_.narrow(0, third * embed, embed));
  return y.view({x.size(0), x.size(1), heads_, embed / heads_}).transpose(1, 2);
}

at::Tensor Attention::operator()(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const at::Tensor& mask,
                                 double dropout) const {
  const std::optional<at::Tensor> may_attend =
      mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt;
  const at::Tensor heads = at::scaled_dot_product_attention(project(query, 0), project(key, 1),
                                                            project(value, 2), may_attend, dropout);
  return out_(heads.transpose(1, 2).flatten(2));
}

DecoderLayer::DecoderLayer(const ModelConfig& config, ParameterSet& set, const std::string& name)
    : dropout_(config.dropout),
      cross_attention_dropout_(config.cross_attention_dropout),
      self_attention_(set, name + ".attentions.0", config.embed, config.heads),
      cross_attention_(set, name + ".attentions.1", config.embed, config.heads),
      up_(set, name + ".ffns.0.layers.0.0", config.embed, config.ffn, kWeight, kBias),
      down_(set, name + ".ffns.0.layers.1", config.ffn, config.embed, kWeight, kBias),
      norm1_(set, name + ".norms.0", config.embed),
      norm2_(set, name + ".norms.1", config.embed),
      norm3_(set, name + ".norms.2", config.embed) {}

at::Tensor DecoderLayer::operator()(const at::Tensor& content, const DecoderInput& input,
                                    bool has_dropout) const {
  const double p = has_dropout ? dropout_ : 0;
  const double p_cross = has_dropout ? cross_attention_dropout_ : 0;
  at::Tensor placed = content + input.query_position;
  at::Tensor q = norm1_(content + drop(self_attention_(placed, placed, content, input.mask, p), p));
  placed = q + input.query_position;
  q = norm2_(q + drop(cross_attention_(placed, input.key, input.memory, {}, p_cross), p));
  return norm3_(q + drop(down_(drop(up_(q).relu_(), p)), p));
}

Decoder::Decoder(const ModelConfig& config, ParameterSet& set)
    : has_checkpoints_(config.has_decoder_checkpoints),
      layers_(make_layers(config, set)),
      post_norm_(set, fmt::format("{}.post_norm", kDecoderName), config.embed) {}

at::Tensor Decoder::run(const DecoderLayer& layer, const at::Tensor& content,
                        const DecoderInput& input, bool has_dropout) const {
  if (!has_checkpoints_) return layer(content, input, has_dropout);
  const auto block = [&layer, has_dropout, mask = input.mask](const auto& inputs) {
    return layer(inputs[0], {inputs[1], inputs[2], inputs[3], mask}, has_dropout);
  };
  return checkpoint(block, {content, input.query_position, input.memory, input.key},
                    has_dropout ? BlockRandomness::kDropout : BlockRandomness::kNone);
}

void Decoder::forward(const DecoderInput& input, bool has_dropout, const OnLayer& on_layer) const {
  at::Tensor content = at::zeros_like(input.query_position);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    content = run(layers_[i], content, input, has_dropout);
    on_layer(static_cast<int>(i), post_norm_(content));
  }
}

}  // namespace hvd::petrv2
