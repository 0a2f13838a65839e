// Which rank gives no sign of life any more (--stall-timeout)? What the agents see of the ranks,
// the heartbeats of those that use the runtime, and the time go in; the rank to blame comes out.
// Pure.
//
// A rank is silent when for the whole limit it has written nothing, none of its processes has used
// CPU time and, if it uses the runtime, its heartbeats have told no progress. Ranks that wait for a
// hung one in a system call fall silent with it: a stopped process is blamed before one in
// uninterruptible sleep, that before others, and of equals the one that has been silent longest.
//
// Lifecycle: as long as the job. Thread: the owner's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hvdrun/v1/types.pb.h"
#include "hvdrun/v1/vitals.pb.h"
#include "proto/v1.h"

namespace hvd {

class SilenceWatch {
 public:
  // How often agents must look for this limit.
  [[nodiscard]] static Nanos look_period(Nanos limit);

  // `hosts`: of each rank, as the user calls them.
  SilenceWatch(Nanos limit, std::vector<std::string> hosts);

  void take(const v1::VitalSigns& signs, Nanos now);
  void take(const v1::WorkerBeat& beat, Nanos now);
  void rank_ended(std::uint32_t rank);

  struct Silence {
    std::uint32_t rank = 0;  // to blame
    std::int32_t pid = 0;
    std::vector<std::uint32_t> ranks;  // all that are silent, it among them
    std::string text;  // "rank 2 (node2, pid 4711) has given no sign of life for 2 s ..."
  };
  [[nodiscard]] std::optional<Silence> inspect(Nanos now) const;

 private:
  // What changes as long as a worker of the runtime makes progress.
  struct Progress {
    std::uint32_t generation = 0;
    std::string phase;
    std::uint64_t step = 0;
    std::uint64_t scheduled = 0;
    std::uint64_t completed = 0;
    bool operator==(const Progress&) const = default;
  };
  struct Page {
    v1::RankVitals vitals;
    std::optional<Progress> progress;  // it uses the runtime
    Nanos progressed{0};
  };

  [[nodiscard]] static Nanos silent_for(const Page& page, Nanos now);
  [[nodiscard]] std::string text_of(std::uint32_t rank, const Page& page, Nanos silent,
                                    const std::vector<std::uint32_t>& ranks) const;

  const Nanos limit_;
  const std::vector<std::string> hosts_;
  std::map<std::uint32_t, Page> pages_;
};

}  // namespace hvd
