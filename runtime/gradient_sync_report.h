// Tells the activity board, the flight recorder and the timeline how far the buckets are; whichever
// of them there is. Thread: the communication thread's, except report_lacking() and the like, which
// are the hooks'.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "hvdrun/communicator.h"
#include "hvdrun/sync_options.h"
#include "runtime/gradient_sync_times.h"

namespace hvd {

// A bucket, as it is told.
struct BucketFacts {
  int index = 0;
  std::uint64_t num_bytes = 0;  // on the wire
  bool is_compressed = false;
};

class SyncReport {
 public:
  SyncReport(const SyncOptions& options, DeviceKind kind) : options_(options), kind_(kind) {}

  [[nodiscard]] bool has_listener() const {
    return options_.board != nullptr || options_.recorder != nullptr ||
           options_.timeline != nullptr;
  }
  [[nodiscard]] bool has_timeline() const { return options_.timeline != nullptr; }

  void name_track(int index, const std::vector<std::string>& names) const;

  // The collective's number.
  std::uint64_t schedule(const BucketFacts& bucket);
  void start(std::uint64_t sequence, Nanos at) const;
  // next: the bucket of the oldest one that is not complete; -1: none is in flight.
  void complete(std::uint64_t sequence, Nanos at, int next) const;
  // times: of all stages.
  void draw(const BucketFacts& bucket, const std::array<Nanos, kNumStages>& times) const;

  // The tensors that the next bucket still lacks: some by name, all by number.
  void report_lacking(std::vector<std::string> some, std::size_t num_all) const;
  // One of them has come. false: those told by name have all come, and there are others.
  [[nodiscard]] bool report_arrival(std::string_view name) const;

 private:
  const SyncOptions options_;
  const DeviceKind kind_;
  std::uint64_t last_sequence_ = 0;
};

// What the board shows at most.
inline constexpr std::size_t kNumNamesShown = 6;

}  // namespace hvd
