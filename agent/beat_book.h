// The last word of each of this node's workers of the runtime, on its way to the launcher. Beats
// are collected and sent together; for a worker that is late the agent says so in its stead, with
// what the kernel tells of the process. Pure: beats, process states and the time go in.
//
// Lifecycle: as long as the job. Thread: the loop's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>

#include "base/clock.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

class BeatBook {
 public:
  static constexpr Nanos kPeriod = std::chrono::seconds(2);  // of a worker that does not say it
  static constexpr std::size_t kMaxBeatBytes = 16384;        // a larger one is no beat
  static constexpr int kLatePeriods = 2;

  // Of /proc/PID/stat; '\0': there is no such process.
  using StateOf = std::function<char(pid_t)>;

  // `pid`: of the process that sent it, 0: not known.
  void take(const hvdrun::v1::WorkerBeat& beat, pid_t pid, Nanos now);

  // The worker has closed its call: nothing is expected of it any more.
  void forget(std::uint32_t rank) { pages_.erase(rank); }

  // What has come since the last call, and a word for each late worker, once in its period.
  [[nodiscard]] hvdrun::v1::WorkerBeats collect(Nanos now, const StateOf& state_of);

  [[nodiscard]] bool is_empty() const { return pages_.empty(); }

 private:
  struct Page {
    hvdrun::v1::WorkerBeat beat;
    pid_t pid = 0;
    Nanos heard{0};
    Nanos told{0};  // when it was sent on last
    bool is_new = false;
  };
  std::map<std::uint32_t, Page> pages_;
};

}  // namespace hvd
