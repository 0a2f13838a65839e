// What an agent that serves does for somebody who has shown who he is: starts his job, connects him
// with it again, reaps what a lost one has left, answers questions about the node (hvdctl). It asks
// the policy first, and keeps nothing but the records of jobs (job_record.h).
//
// Lifecycle: open() once, then as long as the loop runs. Thread: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/front_line.h"
#include "agent/gpu_table.h"
#include "agent/job_place.h"
#include "agent/job_record.h"
#include "agent/refusal_log.h"
#include "agent/service_config.h"
#include "agent/users.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

// Who has come, and how.
struct Visitor {
  std::string client;   // of the certificate, or of the machine where he came by the unix socket
  std::string address;  // "10.0.0.9", or "pid 4711"
  // By the unix socket: root or the agent's own user, who may all; or one who may look.
  enum class Local { kNo, kOwner, kObserver };
  Local local = Local::kNo;
  int socket = -1;  // his connection: to see that he has gone while he waits
  std::function<Task<void>(std::string line)> say{};  // before the answer; may be empty

  [[nodiscard]] std::string text() const { return client + " (" + address + ")"; }
};

// What he is answered: a line, with its end, and what his connection carries from then on.
struct FrontAnswer {
  std::string line;
  UniqueFd carried;  // not valid: nothing, it ends
};

struct FrontCounters {
  std::uint64_t connections = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t jobs_started = 0;
  std::uint64_t jobs_refused = 0;
  std::uint64_t resumed = 0;
  std::optional<std::int64_t> certificate_until;  // seconds since the epoch
};

class FrontDesk {
 public:
  struct Place {
    std::string folder;  // of the agent: records/, jobs/, drained below it
    EnvList env;
  };

  // `refusals` is not owned and outlives this.
  FrontDesk(Loop& loop, Place place, const ServiceConfig& config, RefusalLog& refusals);

  // Makes its folders and takes up what an earlier agent has left there. An error names a folder
  // that is somebody else's, or that of another agent which lives.
  [[nodiscard]] Result<void> open();

  // For those to come.
  void reload(const ServiceConfig& config) { config_ = config; }

  [[nodiscard]] Task<FrontAnswer> serve(Visitor visitor, std::string line);

  // No jobs from now on. Every job that runs gets the word to stop; how many do not answer it by
  // having gone, at `limit`.
  [[nodiscard]] Task<std::size_t> stop_all(std::string reason, SteadyTime limit);

  [[nodiscard]] bool has_units() const { return jobs_.has_systemd(); }
  [[nodiscard]] std::size_t num_jobs();
  [[nodiscard]] FrontCounters& counters() { return counters_; }

 private:
  struct Waiter {
    std::string name;
    std::string client;
    std::string address;
    std::string user;
    GpuClaim gpus;
    std::int64_t since;
    std::string killed{};  // by whom, in words
  };

  [[nodiscard]] Task<FrontAnswer> start_job(const Visitor& visitor, FrontLine line);
  [[nodiscard]] Task<Result<JobRecord>> admit(const Visitor& visitor, const FrontLine& line);
  [[nodiscard]] Task<Result<void>> wait_for_turn(const Visitor& visitor, const FrontLine& line,
                                                 const JobRecord& record);
  // `name`: as whom it was to run before it waited.
  [[nodiscard]] Task<Result<void>> take_turn(const Visitor& visitor, const FrontLine& line,
                                             const JobRecord& record, const std::string& name);
  [[nodiscard]] Result<void> claim(const JobRecord& record);
  [[nodiscard]] std::size_t most_jobs_of(const std::string& client) const;
  [[nodiscard]] Task<Result<User>> user_of(std::string name, ClientRule rule);
  [[nodiscard]] static FrontAnswer carry(const std::string& marker, UniqueFd connection);
  [[nodiscard]] Result<std::string> local_user(const Visitor& visitor, const FrontLine& line) const;
  // What stands in the way of a job; empty: nothing. `before`: whose turn is earlier.
  [[nodiscard]] std::string obstacle(const JobRecord& record,
                                     std::list<Waiter>::const_iterator before);
  [[nodiscard]] Result<void> lock_folder();
  [[nodiscard]] FrontAnswer resume_job(const Visitor& visitor, const FrontLine& line);
  [[nodiscard]] FrontAnswer reap_job(const Visitor& visitor, const FrontLine& line);
  [[nodiscard]] Task<void> keep_reap(std::string name, pid_t pid);
  [[nodiscard]] Task<FrontAnswer> control(const Visitor& visitor, const FrontLine& line);
  [[nodiscard]] std::string status(const Visitor& visitor);
  [[nodiscard]] std::string counters_text() const;
  [[nodiscard]] Result<std::string> kill_jobs(const Visitor& visitor, const FrontLine& line);
  [[nodiscard]] Result<void> check_may_kill(const Visitor& visitor, const std::string& job,
                                            const std::string& client) const;
  [[nodiscard]] Result<std::string> drain(const Visitor& visitor, const FrontLine& line);
  [[nodiscard]] bool is_admin(const Visitor& visitor) const;
  [[nodiscard]] FrontAnswer refused(const Visitor& visitor, const FrontLine& line,
                                    const std::string& why);
  // Records of jobs that live, or are being started; those of others are removed after a while.
  [[nodiscard]] std::vector<JobRecord> live_jobs();
  void tell_gone(JobRecord& record);
  // As long as there are some, so that the end of one is told and cleared up without being asked.
  void watch_jobs();
  [[nodiscard]] Task<void> look_at_jobs();
  [[nodiscard]] std::optional<JobRecord> record_of(const FrontLine& line) const;
  [[nodiscard]] Result<void> tell_to_stop(const JobRecord& record, const std::string& reason) const;
  [[nodiscard]] std::string drained() const;

  Loop& loop_;
  const Place place_;
  UniqueFd lock_;  // of the folder, once it is open
  ServiceConfig config_;
  RefusalLog& refusals_;
  bool is_closing_ = false;
  bool is_watching_ = false;
  std::set<std::string> told_to_stop_;  // names of records
  JobPlace jobs_;
  GpuTable gpus_;
  std::optional<JobRecords> records_;        // once it is open
  std::set<std::string> starting_;           // names of records
  std::set<std::string> reaping_;            // the same
  std::list<Waiter> waiting_;                // first come, first served
  std::map<std::string, SteadyTime> ended_;  // since when a job with a record was seen to have gone
  std::map<std::string, User> users_;        // by name, as the machine told last
  SteadyTime users_asked_{};
  std::int64_t began_ = 0;
  FrontCounters counters_;
};

}  // namespace hvd
