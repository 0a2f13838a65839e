// Where the agents of jobs live: each in a process of its own, in a unit of systemd as its user,
// or, where there is no systemd to ask, as a child in a session of its own. Either outlives the
// agent that serves, and is reached at a socket in a folder that only that agent can enter: no job
// can take its place, or hide.
//
// Thread: the loop's.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "agent/job_record.h"
#include "agent/outside_program.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proto/worker_env.h"

namespace hvd {

struct JobPlaceConfig {
  std::string folder;        // of jobs: a socket ID-NODE in it for each; ours alone
  std::string program;       // this one
  bool has_systemd = false;  // and we are root
  EnvList env;               // of a plain child
};

// Whether this machine was started by systemd, and we may ask it for units.
[[nodiscard]] bool may_start_units();

// "hvdrun-job-ID-NODE.service"
[[nodiscard]] std::string unit_of(const JobRecord& record);

// Pure: what starts the job's agent as a unit. `words` are more words for it.
[[nodiscard]] std::vector<std::string> unit_command(const JobPlaceConfig& config,
                                                    const JobRecord& record,
                                                    const std::vector<std::string>& words);

// Reaps a child once it has ended; until then it is nobody's stray (own_children.h).
[[nodiscard]] Task<void> keep_child(Loop& loop, pid_t pid);

class JobPlace {
 public:
  JobPlace(Loop& loop, JobPlaceConfig config) : loop_(loop), config_(std::move(config)) {}

  [[nodiscard]] bool has_systemd() const { return config_.has_systemd; }

  // Returns once the job's agent takes connections: one of them.
  [[nodiscard]] Task<Result<UniqueFd>> start(const JobRecord& record,
                                             const std::vector<std::string>& words,
                                             SteadyTime deadline);

  // A connection to the job's agent. An error's kTimeout: somebody listens, and takes no
  // connection.
  [[nodiscard]] Result<UniqueFd> reach(const JobRecord& record) const;

  // Whether somebody listens there, be it that he takes no connection for the time being.
  [[nodiscard]] bool is_alive(const JobRecord& record) const;

  // systemd ends the job's unit, and all that is in it, whatever the job's agent does. Nothing
  // where it has none. Returns at once; a failure is told in the log.
  void stop_unit(const JobRecord& record) const;

  // What reaps a job on standard input and output, as the job's user; `words` are more words for
  // it.
  [[nodiscard]] std::vector<std::string> reap_command(const JobRecord& record,
                                                      const std::vector<std::string>& words) const;

  // Of sockets at which jobs may be.
  [[nodiscard]] std::vector<std::string> names() const;

  // The socket of a job that has gone.
  void clear(const JobRecord& record) const;

 private:
  struct Start;  // of a unit, under way

  [[nodiscard]] std::string socket_of(const JobRecord& record) const;
  [[nodiscard]] Result<UniqueFd> listen_for(const JobRecord& record) const;
  [[nodiscard]] Result<void> start_unit(const JobRecord& record,
                                        const std::vector<std::string>& words, int listener,
                                        const std::shared_ptr<Start>& start);
  [[nodiscard]] Result<void> start_child(const JobRecord& record,
                                         const std::vector<std::string>& words, int listener) const;
  [[nodiscard]] Task<Result<void>> wait_until_up(const JobRecord& record, const Start& start,
                                                 Result<void> begun, SteadyTime deadline);

  Loop& loop_;
  const JobPlaceConfig config_;
};

}  // namespace hvd
