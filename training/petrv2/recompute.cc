#include "training/petrv2/recompute.h"

namespace hvd::petrv2 {
namespace {

// More than any of the configurations takes, all in all (docs/performance.md).
constexpr std::uint64_t kHalfBytesPerPixel = 2048;
constexpr std::uint64_t kFullBytesPerPixel = 2 * kHalfBytesPerPixel;

bool fits_twice(const MemoryNeed& need) {
  const std::uint64_t per_pixel = need.is_half ? kHalfBytesPerPixel : kFullBytesPerPixel;
  return 2 * need.num_pixels * per_pixel <= need.device_bytes;
}

}  // namespace

void settle_recompute(ModelConfig& model, Recompute wish, const MemoryNeed& need) {
  if (wish == Recompute::kAuto && !fits_twice(need)) return;
  const bool is_on = wish == Recompute::kYes;
  model.backbone.has_checkpoints = is_on;
  model.has_decoder_checkpoints = is_on;
}

const char* recompute_text(const ModelConfig& model) {
  if (model.backbone.has_checkpoints) {
    return model.has_decoder_checkpoints ? "computed again" : "of the backbone computed again";
  }
  return model.has_decoder_checkpoints ? "of the decoder computed again" : "kept";
}

}  // namespace hvd::petrv2
