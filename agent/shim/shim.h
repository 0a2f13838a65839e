// The shim of one job on one node: it speaks with the agent, keeps the lease, climbs the ladder,
// and leaves last. Everything that must outlive the agent is here.
//
// Order of a normal life: config, spawn; Started, LogChunk and ExitReport per rank; Finished. The
// ladder is climbed when the agent asks for it, when its socket ends, when the lease runs out, and,
// from the kill on, when the last leader has ended and something is left.
//
// Thread: one, and it must stay so: the parent-death signal of the workers follows the forking
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/shim/containment.h"
#include "agent/shim/crew.h"
#include "agent/shim/input_feed.h"
#include "agent/shim/job_cgroup.h"
#include "agent/shim/ladder.h"
#include "agent/shim/lease.h"
#include "agent/shim/link.h"
#include "agent/shim/log_pump.h"
#include "agent/shim/poller.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

class Shim final : private CrewListener {
 public:
  // All signals are blocked before this.
  explicit Shim(UniqueFd socket);
  ~Shim() override;

  [[nodiscard]] Result<void> open();
  void run();
  // Empty if no job was ever given.
  [[nodiscard]] std::string job_dir() const { return config_.job_dir(); }

 private:
  // What exists from the config on.
  struct Job {
    LogPump pump;
    Crew crew;
    Ladder ladder;
    Job(Poller& poller, const hvdrun::v1::ShimConfig& config, LogPump::Sink sink,
        CrewListener& listener);
  };

  void on_message(const hvdrun::v1::ToShim& message);
  void on_agent_gone();
  void on_child_signal();
  void configure(const hvdrun::v1::ShimConfig& config);
  void spawn(const hvdrun::v1::ShimSpawn& spawn);
  void pong(const hvdrun::v1::ShimPing& ping);
  void notice(std::string text);
  void pass_signal(const hvdrun::v1::ShimSignal& signal);
  void take_input(const hvdrun::v1::ShimStdin& input);
  void open_input();
  void allow_cores() const;

  void on_started(const Worker& worker) override;
  void on_failed(const Worker& worker) override;
  void on_ended(const Worker& worker, Ending ending) override;
  void on_pmi(std::uint32_t rank, std::string piece) override;

  void stop(Nanos grace, int signal);
  void act(LadderAction action, Nanos now);
  void signal_groups();
  void take_turn(Nanos now);
  void check_lease(Nanos now);
  void climb(Nanos now);
  void look_for_groups(Nanos now);
  void sweep(Nanos now);
  void leave_when_done(Nanos now);
  [[nodiscard]] Nanos give_up_at() const;
  [[nodiscard]] Nanos next_wake() const;
  [[nodiscard]] bool is_stopping() const;
  // shim_hold.cc
  void make_cgroup();
  void kill_cgroup();
  void release_cgroup();
  void look_for_remains();
  [[nodiscard]] Container container() const;
  // With what the cgroup lists: to look at, not to signal, because the list is older than the look.
  [[nodiscard]] std::vector<ProcStat> find_all() const;

  Poller poller_;
  UniqueFd socket_;         // until the link has it
  UniqueFd child_signals_;  // signalfd for SIGCHLD
  std::optional<Link> link_;
  hvdrun::v1::ShimConfig config_;
  std::unique_ptr<Job> job_;
  std::optional<InputFeed> input_;  // of the rank that has one
  std::optional<JobCgroup> cgroup_;
  UniqueFd job_dir_lock_;  // from the first spawn on
  Nanos since_{0};         // the config came; wall clock
  Lease lease_;
  Sweep sweep_;
  hvdrun::v1::Finished finished_;
  int first_signal_ = 0;
  Nanos look_at_{0};   // next look for members of workers' groups, while waiting
  Nanos sweep_at_{0};  // next step of the sweep, while killing
  Nanos done_at_ = Nanos::max();
  bool has_spawned_ = false;
  bool is_lease_lost_ = false;
  bool has_reported_ = false;
  bool is_over_ = false;
};

}  // namespace hvd
