// How gradients are synchronised among the ranks: the sizes of buckets, compression, time limit,
// and who is told. Torch-free.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace hvd {

class ActivityBoard;
class FlightRecorder;
class Timeline;

// What float32 gradients travel as. Gradients of other types, and those of the first bucket, are
// never compressed.
enum class Compression : std::uint8_t {
  kNone,
  kFloat16,  // divided by sqrt(ranks) before the sum and after it: neither overflows nor vanishes
  kBfloat16,
};
// "none", "fp16", "bf16".
[[nodiscard]] std::string_view name_of(Compression compression);

// Equal on all ranks, but for the last three. GradientSynchronizer checks that.
struct SyncOptions {
  std::size_t first_bucket_bytes = 1UL << 20;  // small, so that communication begins early
  std::size_t bucket_bytes = 25UL << 20;       // 0: a bucket for each tensor
  Compression compression = Compression::kNone;
  std::size_t num_riders = 0;  // numbers that travel with the first bucket
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // of each collective
  // Not owned, outlive the synchroniser; null: nobody is told.
  ActivityBoard* board = nullptr;
  FlightRecorder* recorder = nullptr;
  Timeline* timeline = nullptr;
};

// `options` with what the environment says: HOROVOD_FUSION_THRESHOLD, in bytes, is bucket_bytes.
// An error (ExitCode::kUsage) where that is no number.
[[nodiscard]] Result<SyncOptions> sync_options_from_environment(SyncOptions options = {});

}  // namespace hvd
