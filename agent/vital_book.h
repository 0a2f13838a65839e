// When each rank of this node gave its last sign of life as seen from outside: output, and CPU time
// of its processes. Pure: output, tables of processes and the time go in.
//
// Very little CPU time is no sign: the threads of libraries that wake up to look at the clock use
// some for ever, whatever the program does. What counts is a thousandth of one processor over the
// time after which a rank is looked upon as stalled, and at least a clock tick. A stopped process
// uses none.
//
// Lifecycle: as long as the job. Thread: the loop's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "agent/rank_family.h"
#include "base/clock.h"
#include "hvdrun/v1/vitals.pb.h"

namespace hvd {

class VitalBook {
 public:
  // `period`: between two looks; the ranks are judged after kLooks of them.
  static constexpr int kLooks = 8;
  VitalBook(Nanos period, long ticks_per_second);

  void start(std::uint32_t rank, pid_t pid, Nanos now);
  void end(std::uint32_t rank) { pages_.erase(rank); }
  void hear(std::uint32_t rank, Nanos now);  // output has come

  // Late looks begin anew: who was not looked at may have done anything.
  void look(const std::vector<ProcStat>& table, Nanos now);

  [[nodiscard]] hvdrun::v1::VitalSigns signs(Nanos now) const;
  [[nodiscard]] bool is_empty() const { return pages_.empty(); }

 private:
  struct Page {
    pid_t pid = 0;
    char state = '\0';
    std::uint64_t ticks = 0;  // at the last sign
    Nanos heard{0};
    Nanos worked{0};
  };
  void look_at(Page& page, const std::vector<const ProcStat*>& family, Nanos now) const;

  const Nanos period_;
  const std::uint64_t least_ticks_;
  std::map<std::uint32_t, Page> pages_;
  Nanos looked_{0};
};

}  // namespace hvd
