#include "training/petrv2/model/denoising.h"

#include <algorithm>

#include "training/petrv2/model/position.h"
#include "training/petrv2/model/upload.h"

namespace hvd::petrv2 {
namespace {

// (M, 3): centres moved by noise of half the size, axis by axis of the lidar frame, in 0..1 of the
// point-cloud range.
at::Tensor noisy_centres(const at::Tensor& boxes, const at::Tensor& noise, double scale) {
  const at::Tensor low = at::tensor(at::ArrayRef<double>(kPointCloudRange.low), at::kDouble);
  const at::Tensor high = at::tensor(at::ArrayRef<double>(kPointCloudRange.high), at::kDouble);
  const at::Tensor moved = boxes.slice(1, 0, 3) + noise * boxes.slice(1, 3, 6) * (scale / 2);
  return ((moved - low) / (high - low)).nan_to_num(0).clamp(0, 1);
}

// Learned rows see learned columns; rows of a group see their group and the learned columns.
at::Tensor attention_mask(int groups, int per_group, int queries) {
  const int slots = groups * per_group;
  at::Tensor mask = at::zeros({slots + queries, slots + queries}, at::kBool);
  mask.slice(1, slots, slots + queries).fill_(true);
  for (int group = 0; group < groups; ++group) {
    const int begin = group * per_group;
    mask.slice(0, begin, begin + per_group).slice(1, begin, begin + per_group).fill_(true);
  }
  return mask;
}

// (M): b * slots + slot of every copy.
std::vector<std::int64_t> slots_of(const std::vector<Targets>& targets, int groups, int per_group) {
  std::vector<std::int64_t> slots;
  for (int group = 0; group < groups; ++group) {
    for (std::size_t b = 0; b < targets.size(); ++b) {
      for (std::int64_t i = 0; i < targets[b].boxes.size(0); ++i) {
        slots.push_back(static_cast<std::int64_t>(b) * groups * per_group + group * per_group + i);
      }
    }
  }
  return slots;
}

int most_boxes(const std::vector<Targets>& targets) {
  std::int64_t most = 0;
  for (const Targets& target : targets) most = std::max(most, target.boxes.size(0));
  return static_cast<int>(most);
}

}  // namespace

DenoisingQueries make_denoising_queries(const std::vector<Targets>& targets,
                                        const at::Tensor& noise, const ModelConfig& config,
                                        const at::TensorOptions& options) {
  const int per_group = most_boxes(targets);
  if (per_group == 0) return {};
  std::vector<at::Tensor> boxes, labels;
  for (const Targets& target : targets) {
    boxes.push_back(target.boxes);
    labels.push_back(target.labels);
  }
  const int groups = config.denoising.groups;
  const at::Tensor all_boxes = at::cat(boxes).repeat({groups, 1});
  const at::Tensor all_labels = at::cat(labels).repeat({groups});
  const at::Tensor centres = noisy_centres(all_boxes, noise, config.denoising.noise_scale);
  const at::Tensor is_far = noise.norm(2, 1).gt(config.denoising.split);
  const auto num_samples = static_cast<std::int64_t>(targets.size());
  const at::Tensor slots = at::tensor(slots_of(targets, groups, per_group), at::kLong);
  DenoisingQueries queries;
  queries.num_slots = groups * per_group;
  queries.anchors = upload(at::zeros({num_samples * queries.num_slots, 3}, at::kDouble)
                               .index_copy_(0, slots, centres)
                               .view({num_samples, queries.num_slots, 3}),
                           options);
  queries.mask = upload(attention_mask(groups, per_group, config.queries), options.device());
  queries.slots = upload(slots, options.device());
  queries.labels = upload(all_labels.masked_fill(is_far, kNumClasses), options.device());
  queries.boxes =
      upload(at::arange(all_boxes.size(0) / groups, at::kLong).repeat({groups}), options.device());
  return queries;
}

}  // namespace hvd::petrv2
