#include "training/petrv2/model/head.h"

#include <fmt/format.h>

#include "training/petrv2/batch.h"
#include "training/petrv2/model/upload.h"

namespace hvd::petrv2 {
namespace {

constexpr std::array<int, 5> kTaskSizes{2, 1, 3, 2, 2};  // channels of the five box heads

std::string head_name(std::string_view part) { return fmt::format("pts_bbox_head.{}", part); }

// sigmoid(raw + log-odds of the anchor) in metres of the point-cloud range.
at::Tensor metres(const at::Tensor& raw, const at::Tensor& log_odds, int axis) {
  const double low = kPointCloudRange.low[axis];
  return (raw + log_odds).sigmoid() * (kPointCloudRange.high[axis] - low) + low;
}

template <typename Branch>
std::vector<Branch> make_branches(const ModelConfig& config, ParameterSet& set,
                                  std::string_view name) {
  std::vector<Branch> branches;
  for (int layer = 0; layer < config.layers; ++layer) {
    branches.emplace_back(set, fmt::format("{}.{}", head_name(name), layer), config.embed);
  }
  return branches;
}

// (B, n, C) -> (B * n, C), what observers see.
void observe(const StageObserver& observer, std::string_view stage, const at::Tensor& value) {
  if (observer) observer(stage, value.dim() == 3 ? value.flatten(0, 1) : value);
}

}  // namespace

ClassBranch::ClassBranch(ParameterSet& set, const std::string& name, int embed)
    : first_(set, name + ".0", embed, embed),
      norm1_(set, name + ".1", embed),
      second_(set, name + ".3", embed, embed),
      norm2_(set, name + ".4", embed),
      last_(set, name + ".6", embed, kNumClasses, TensorRole::kLinearWeight,
            TensorRole::kClassBias) {}

at::Tensor ClassBranch::operator()(const at::Tensor& x) const {
  return last_(norm2_(second_(norm1_(first_(x)).relu_())).relu_());
}

BoxBranch::BoxBranch(ParameterSet& set, const std::string& name, int embed)
    : first_(set, name + ".reg_branch.0", embed, embed),
      second_(set, name + ".reg_branch.3", embed, embed) {
  for (std::size_t i = 0; i < kTaskSizes.size(); ++i) {
    const std::string head = fmt::format("{}.task_heads.{}", name, i);
    heads_.push_back(
        {Linear(set, head + ".0", embed, embed), Linear(set, head + ".2", embed, kTaskSizes[i])});
  }
}

at::Tensor BoxBranch::operator()(const at::Tensor& x) const {
  const at::Tensor trunk = second_(first_(x).relu_()).relu_();
  std::vector<at::Tensor> parts;
  for (const TaskHead& head : heads_) parts.push_back(head.last(head.first(trunk).relu_()));
  return at::cat(parts, -1);
}

at::Tensor boxes_from_raw(const at::Tensor& raw, const at::Tensor& anchors,
                          const at::Tensor& time_delta) {
  const at::Tensor log_odds = inverse_sigmoid(anchors);
  const auto channels = [&raw](int begin, int end) { return raw.slice(2, begin, end); };
  return at::cat({metres(channels(0, 1), log_odds.slice(2, 0, 1), 0),
                  metres(channels(1, 2), log_odds.slice(2, 1, 2), 1), channels(2, 4),
                  metres(channels(4, 5), log_odds.slice(2, 2, 3), 2), channels(5, 8),
                  channels(8, 10) / time_delta.view({-1, 1, 1})},
                 2);
}

Head::Head(const ModelConfig& config, int in_channels, ParameterSet& set)
    : config_(config),
      projection_(set, head_name("input_proj"), in_channels, config.embed),
      position_encoder_{
          TokenConv(set, head_name("position_encoder.0"), 3 * config.depth_bins, 4 * config.embed),
          TokenConv(set, head_name("position_encoder.2"), 4 * config.embed, config.embed)},
      gate_{TokenConv(set, head_name("fpe.conv_reduce"), config.embed, config.embed),
            TokenConv(set, head_name("fpe.conv_expand"), config.embed, config.embed)},
      adapter_(config.has_sine
                   ? std::optional<Mlp>(Mlp{TokenConv(set, head_name("adapt_pos3d.0"),
                                                      config.embed / 2 * 3, 4 * config.embed),
                                            TokenConv(set, head_name("adapt_pos3d.2"),
                                                      4 * config.embed, config.embed)})
                   : std::nullopt),
      anchors_(
          set.add(head_name("reference_points.weight"), {config.queries, 3}, TensorRole::kAnchors)),
      query_first_(set, head_name("query_embedding.0"), config.embed / 2 * 3, config.embed),
      query_second_(set, head_name("query_embedding.2"), config.embed, config.embed),
      decoder_(config, set),
      class_branches_(make_branches<ClassBranch>(config, set, "cls_branches")),
      box_branches_(make_branches<BoxBranch>(config, set, "reg_branches")),
      code_weights_(set.add(head_name("code_weights"), {kCodeSize}, TensorRole::kCodeWeights,
                            /*is_trainable=*/false)) {
  if (code_weights_.is_meta()) return;
  code_weights_.copy_(at::tensor(at::ArrayRef<double>(config.code_weights), at::kDouble));
}

at::Tensor Head::position_3d(const HeadInput& input, const FeatureGrid& grid,
                             const StageObserver& observer) const {
  const at::Tensor coords =
      frustum_coords(input.lidar2img.flatten(0, 1), grid, config_.depth_bins, anchors_.options());
  observe(observer, "coords", coords);
  const std::int64_t num_samples = input.lidar2img.size(0);
  const at::Tensor log_odds =
      inverse_sigmoid(coords).view({num_samples, -1, 3 * config_.depth_bins});
  observe(observer, "log_odds", log_odds);
  const at::Tensor encoded = position_encoder_(log_odds);
  observe(observer, "pe3d", encoded);
  return encoded;
}

// (1, T, E): the same for every sample.
at::Tensor Head::sine_position(std::int64_t num_samples, const FeatureGrid& grid,
                               const StageObserver& observer) const {
  if (!sine_.defined() || sine_grid_.height != grid.height || sine_grid_.width != grid.width) {
    sine_ = upload(sine_embedding(kNumViews, grid, config_.embed / 2).flatten(0, 2),
                   anchors_.options());
    sine_grid_ = grid;
  }
  observe(observer, "sine", sine_.repeat({num_samples, 1}));
  return (*adapter_)(sine_).unsqueeze(0);
}

Head::Tokens Head::make_tokens(const HeadInput& input, const StageObserver& observer) const {
  const at::Tensor& feature = input.feature;
  const FeatureGrid grid{static_cast<int>(feature.size(2)), static_cast<int>(feature.size(3)),
                         config_.stride()};
  const std::int64_t num_samples = feature.size(0) / kNumViews;
  const at::Tensor tokens =
      feature.permute({0, 2, 3, 1})
          .reshape({num_samples, kNumViews * grid.height * grid.width, feature.size(1)});
  const at::Tensor memory = projection_(tokens);
  observe(observer, "projection", memory);
  const at::Tensor encoded = position_3d(input, grid, observer);
  const at::Tensor gate = gate_(memory).sigmoid();
  observe(observer, "gate", gate);
  at::Tensor position = gate * encoded;
  if (adapter_) position = position + sine_position(num_samples, grid, observer);
  observe(observer, "pos", position);
  return {memory, position};
}

// (B, slots + Q, 3), or (1, Q, 3) without denoising.
at::Tensor Head::anchors_of(const HeadInput& input) const {
  const at::Tensor learned = anchors_.unsqueeze(0);
  if (input.denoising == nullptr || input.denoising->num_slots == 0) return learned;
  const at::Tensor& noisy = input.denoising->anchors;
  return at::cat({noisy, learned.expand({noisy.size(0), -1, -1})}, 1);
}

LayerOutput Head::run_branches(int layer, at::Tensor output, const at::Tensor& anchors,
                               const at::Tensor& time_delta, int num_slots,
                               const StageObserver& observer) const {
  // A denoising head never replaced non-finite outputs; the plain one does.
  if (config_.denoising.groups == 0) output = at::nan_to_num(output);
  const at::Tensor logits = class_branches_[layer](output);
  const at::Tensor raw = box_branches_[layer](output);
  const at::Tensor boxes = boxes_from_raw(raw, anchors, time_delta);
  const auto learned = [num_slots](const at::Tensor& x) {
    return x.slice(1, num_slots, x.size(1));
  };
  if (observer) {
    observe(observer, fmt::format("decoder.{}", layer), learned(output));
    observe(observer, fmt::format("raw.{}", layer), learned(raw));
    observe(observer, fmt::format("class.{}", layer), learned(logits));
    observe(observer, fmt::format("box.{}", layer), learned(boxes));
  }
  if (num_slots == 0) return {logits, boxes, {}, {}};
  return {learned(logits), learned(boxes), logits.slice(1, 0, num_slots),
          boxes.slice(1, 0, num_slots)};
}

void Head::forward(const HeadInput& input, const StageObserver& observer,
                   const OnLayer& on_layer) const {
  const Tokens tokens = make_tokens(input, observer);
  const at::Tensor anchors = anchors_of(input);
  const at::Tensor query =
      query_second_(query_first_(anchor_embedding(anchors, config_.embed / 2)).relu_());
  observe(observer, "query", query[0].slice(0, query.size(1) - config_.queries, query.size(1)));
  const int num_slots = input.denoising == nullptr ? 0 : input.denoising->num_slots;
  const DecoderInput decoder_input{query.expand({tokens.memory.size(0), -1, -1}), tokens.memory,
                                   tokens.memory + tokens.position,
                                   num_slots == 0 ? at::Tensor() : input.denoising->mask};
  const at::Tensor time_delta = upload(input.time_delta, tokens.memory.options());
  decoder_.forward(decoder_input, input.has_dropout, [&](int layer, const at::Tensor& output) {
    on_layer(layer, run_branches(layer, output, anchors, time_delta, num_slots, observer));
  });
}

}  // namespace hvd::petrv2
