#include "runtime/gradient_sync_report.h"

#include "base/plural.h"
#include "runtime/activity_board.h"
#include "runtime/flight_recorder.h"
#include "runtime/timeline.h"

namespace hvd {

void SyncReport::name_track(int index, const std::vector<std::string>& names) const {
  if (options_.timeline == nullptr) return;
  std::string text = fmt::format("bucket {}", index);
  if (!names.empty()) {
    text += fmt::format(": {}{} ({})", names.front(), names.size() > 1 ? " ..." : "",
                        counted(names.size(), "tensor"));
  }
  options_.timeline->name_track(index, text);
}

std::uint64_t SyncReport::schedule(const BucketFacts& bucket) {
  ++last_sequence_;
  if (options_.recorder != nullptr) {
    last_sequence_ = options_.recorder->schedule(
        kind_ == DeviceKind::kCuda ? "nccl:all_reduce" : "tcp:all_reduce", bucket.index,
        bucket.num_bytes, options_.timeout);
  }
  if (options_.board != nullptr) {
    options_.board->update([&](Activity& activity) {
      activity.scheduled = last_sequence_;
      if (activity.waiting_for.empty()) {
        activity.waiting_for = fmt::format("all_reduce of bucket {}", bucket.index);
      }
    });
  }
  return last_sequence_;
}

void SyncReport::start(std::uint64_t sequence, Nanos at) const {
  if (options_.recorder != nullptr) options_.recorder->mark_started(sequence, at);
}

void SyncReport::complete(std::uint64_t sequence, Nanos at, int next) const {
  if (options_.recorder != nullptr) options_.recorder->mark_completed(sequence, at);
  if (options_.board == nullptr) return;
  options_.board->update([&](Activity& activity) {
    activity.completed = sequence;
    activity.waiting_for = next < 0 ? "" : fmt::format("all_reduce of bucket {}", next);
  });
}

void SyncReport::draw(const BucketFacts& bucket, const std::array<Nanos, kNumStages>& times) const {
  if (options_.timeline == nullptr) return;
  const auto span = [&](std::string_view name, Stage begin, Stage end) {
    options_.timeline->span(bucket.index, name, times[static_cast<std::size_t>(begin)],
                            times[static_cast<std::size_t>(end)]);
  };
  span("ALLREDUCE", Stage::kFull, Stage::kStored);
  span("MEMCPY_IN_FUSION_BUFFER", Stage::kFull, Stage::kFilled);
  span("QUEUE", Stage::kFilled, Stage::kTaken);
  if (bucket.is_compressed) span("MEMCPY_IN_FUSION_BUFFER", Stage::kTaken, Stage::kLoaded);
  span(kind_ == DeviceKind::kCuda ? "NCCL_ALLREDUCE" : "TCP_ALLREDUCE", Stage::kLoaded,
       Stage::kReduced);
  if (bucket.is_compressed) span("MEMCPY_OUT_FUSION_BUFFER", Stage::kReduced, Stage::kStored);
}

void SyncReport::report_lacking(std::vector<std::string> some, std::size_t num_all) const {
  if (options_.board == nullptr) return;
  options_.board->update([&](Activity& activity) {
    activity.missing = std::move(some);
    activity.num_missing = static_cast<std::uint32_t>(num_all);
  });
}

bool SyncReport::report_arrival(std::string_view name) const {
  if (options_.board == nullptr) return true;
  bool has_names = true;
  options_.board->update([&](Activity& activity) {
    std::erase(activity.missing, name);
    if (activity.num_missing > 0) --activity.num_missing;
    has_names = activity.num_missing == 0 || !activity.missing.empty();
  });
  return has_names;
}

}  // namespace hvd
