// Which ranks keep the others waiting? Heartbeats of the workers and the time go in; warnings, a
// request for dumps and at last the cause of the job's end come out. Pure.
//
// A job stalls when a rank has handed over a collective that others have not, or a rank has fallen
// silent, and neither the slowest rank's number nor anybody's completed number changes any more.
// What is told is Horovod's: a warning after the check time and once in each interval of it, the
// end after the shutdown time (off unless set).
//
// Lifecycle: as long as the job; a newer generation of ranks begins anew. Thread: the owner's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"
#include "proto/worker_env.h"

namespace hvd {

struct StallSettings {
  bool is_on = true;
  Nanos warn_after = std::chrono::seconds(60);
  Nanos shut_down_after{0};           // 0: never
  std::vector<std::string> warnings;  // about values that are not used
};

// From HOROVOD_STALL_CHECK_DISABLE, HOROVOD_STALL_CHECK_TIME_SECONDS and
// HOROVOD_STALL_SHUTDOWN_TIME_SECONDS, as the workers get them: `user` is -x and wins.
[[nodiscard]] StallSettings stall_settings(const EnvList& launcher, const EnvList& user);

class StallInspector {
 public:
  static constexpr Nanos kDumpTime = std::chrono::seconds(1);  // between the dumps and the end

  struct Stall {
    std::uint32_t rank = 0;  // the one to blame; of several the most suspicious
    std::string text;
  };
  struct Findings {
    std::vector<std::string> warnings;
    std::optional<std::string> dump;  // every worker should write down what it knows; why
    std::optional<Stall> stall;       // the job should end
  };

  // `hosts`: of each rank, as the user calls them.
  StallInspector(StallSettings settings, std::vector<std::string> hosts);

  void take(const hvdrun::v1::WorkerBeat& beat, Nanos now);
  // The rank's process has ended without a failure, `how` says it: "ended with code 0".
  void rank_ended(std::uint32_t rank, std::string how);
  // All ranks should run by then; if not, one warning says how far each came.
  void expect_running_by(Nanos deadline) { start_deadline_ = deadline; }

  [[nodiscard]] Findings inspect(Nanos now);

 private:
  struct Marker {  // changes as long as there is progress
    std::uint64_t least_scheduled = 0;
    std::uint64_t most_completed = 0;
    bool operator==(const Marker&) const = default;
  };

  void restart(const hvdrun::v1::WorkerBeat& beat, Nanos now);
  [[nodiscard]] std::uint64_t scheduled_of(std::uint32_t rank) const;
  [[nodiscard]] std::uint64_t most_scheduled() const;
  [[nodiscard]] Marker marker() const;
  [[nodiscard]] bool is_silent(std::uint32_t rank) const;
  [[nodiscard]] std::vector<std::uint32_t> suspects() const;
  [[nodiscard]] std::uint32_t worst(const std::vector<std::uint32_t>& suspects) const;
  void inspect_stall(Nanos now, Findings& findings);
  void inspect_start(Nanos now, Findings& findings);
  [[nodiscard]] std::string stall_text(const std::vector<std::uint32_t>& suspects, Nanos stalled,
                                       bool has_tensors) const;
  [[nodiscard]] std::string describe(std::uint32_t rank, bool has_tensors) const;
  [[nodiscard]] std::string state_of(std::uint32_t rank) const;
  [[nodiscard]] std::string waiting_text(const std::vector<std::uint32_t>& suspects) const;
  [[nodiscard]] std::string stages_text() const;

  const StallSettings settings_;
  const std::vector<std::string> hosts_;
  std::uint32_t generation_ = 0;
  std::uint32_t size_ = 0;                                 // 0: no beat has come
  std::map<std::uint32_t, hvdrun::v1::WorkerBeat> beats_;  // the last one of each rank
  std::map<std::uint32_t, std::string> ended_;
  Marker marker_;
  Nanos since_{0};  // the last progress, or the last time that nobody was suspect
  Nanos next_warning_{0};
  std::optional<Nanos> dumped_;
  std::optional<Nanos> start_deadline_;
};

}  // namespace hvd
