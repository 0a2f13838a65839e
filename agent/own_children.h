// The children that this process has started and still answers for: shims, programs beside a job,
// reaps. One agent may have those of several jobs at once, and as a sub-reaper it also gets
// children that it never started: what a shim has left behind when it died. Only these strays may
// be swept, and they are nobody's to reap but ours.
//
// Lifecycle: one for each loop, made on first use (boost::asio::use_service). Thread: the loop's.
#pragma once

#include <sys/types.h>

#include <boost/asio/execution_context.hpp>
#include <set>

#include "base/loop.h"

namespace hvd {

class OwnChildren : public boost::asio::execution_context::service {
 public:
  using key_type = OwnChildren;
  static inline boost::asio::execution_context::id id;

  [[nodiscard]] static OwnChildren& of(Loop& loop) {
    return boost::asio::use_service<OwnChildren>(loop);
  }
  explicit OwnChildren(boost::asio::execution_context& owner) : service(owner) {}

  [[nodiscard]] const std::set<pid_t>& pids() const { return pids_; }

  // Reaps strays that have ended; whether one is left that lives. Reads the process table.
  bool reap_strays() const;

  // Whether a child, stray or not, has ended and waits to be reaped.
  [[nodiscard]] static bool has_dead_one();

 private:
  friend class OwnChild;
  void shutdown() override {}

  std::set<pid_t> pids_;
};

// One of them, from its start until it was reaped or nobody wants it any more: then it counts as a
// stray.
class OwnChild {
 public:
  OwnChild(Loop& loop, pid_t pid) : all_(OwnChildren::of(loop)), pid_(pid) {
    all_.pids_.insert(pid);
  }
  OwnChild(const OwnChild&) = delete;
  OwnChild& operator=(const OwnChild&) = delete;
  ~OwnChild() { all_.pids_.erase(pid_); }

 private:
  OwnChildren& all_;  // the loop's, which outlives this
  const pid_t pid_;
};

}  // namespace hvd
