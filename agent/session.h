// One launcher on one connection to the unix socket of an agent that serves: its greeting has been
// read, what follows is one job of its own, or a reap. Its end, whatever the reason, is the end of
// that job and touches no other session.
//
// Lifecycle: made with the connection, run() once; destroyed after run() has returned. Thread: the
// loop's.
#pragma once

#include <optional>
#include <string>

#include "agent/greeting.h"
#include "agent/job.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

class Session {
 public:
  // What all sessions of one agent share.
  struct Place {
    EnvList node_env;  // as the agent was given it
    CgroupPlace cgroup;
  };

  // `stream` is a connected non-blocking socket, `who` stands in the log for whoever came. `place`
  // is not owned and outlives this.
  Session(Loop& loop, UniqueFd stream, std::string who, const Place& place);

  // `line`: the greeting. Returns when the job is over and nothing of it is left here.
  [[nodiscard]] Task<void> run(Result<std::string> line);

  // As if the connection had ended: the job climbs its ladder, and run() returns after it.
  void stop();

  // "pid 4711 (uid 0), job 0123.. node 0: bye after 1.2 s"; once run() has returned.
  [[nodiscard]] std::string summary() const;

 private:
  [[nodiscard]] Task<void> run_job();
  [[nodiscard]] Task<void> run_reap();
  void refuse(const std::string& why);
  void say(const std::string& words) const;
  [[nodiscard]] CgroupPlace cgroup() const;
  [[nodiscard]] std::string job_text() const;

  Loop& loop_;
  const std::string who_;
  const Place& place_;
  const Nanos began_;
  UniqueFd stream_;  // until a job or a reap has it
  Greeting greeting_;
  std::optional<Job> job_;
  Event is_job_over_;
  std::string end_;
};

}  // namespace hvd
