// All workers of this node: starts them, follows each one's set-up and end, signals them, reaps.
// What becomes of them is told to a listener; nothing is decided here.
//
// Lifecycle: one per job, from the config to the shim's end. Poller and pump are not owned and
// outlive this. Thread: the shim's only one.
#pragma once

#include <sys/types.h>

#include <list>
#include <set>
#include <unordered_map>
#include <vector>

#include "agent/shim/containment.h"
#include "agent/shim/exit_report.h"
#include "agent/shim/log_pump.h"
#include "agent/shim/poller.h"
#include "agent/shim/worker.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

class CrewListener {
 public:
  virtual ~CrewListener() = default;
  virtual void on_started(const Worker& worker) = 0;
  virtual void on_failed(const Worker& worker) = 0;                // never ran; see worker.failure
  virtual void on_ended(const Worker& worker, Ending ending) = 0;  // its leader has been reaped
};

class Crew {
 public:
  Crew(Poller& poller, LogPump& pump, Nanos drain, CrewListener& listener);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void start(const hvdrun::v1::ShimSpawn& spawn);

  // Reaps whatever has ended: leaders are reported, adopted orphans are not. After every SIGCHLD.
  void reap();
  // A child is left, leader or adopted: some descendant lives.
  [[nodiscard]] static bool has_children();

  [[nodiscard]] bool has_living_leader() const { return num_alive_ > 0; }
  // Sessions that are certainly ours: their leaders are unreaped.
  [[nodiscard]] std::set<pid_t> held_sessions() const;

  void signal_leaders(int signal);
  // Every worker's process group, also where the leader is dead and the group is not: then member
  // by member among `members`, because the number alone proves nothing any more.
  void signal_groups(int signal, const std::vector<ProcStat>& members);
  // Whether a process among these is in some worker's group.
  [[nodiscard]] bool has_group_member(const std::vector<ProcStat>& members) const;

 private:
  void start_one(Worker& worker, const hvdrun::v1::WorkerSpec& spec, int pipe_bytes);
  void follow_set_up(Worker& worker);
  void reap_leader(Worker& worker);
  void fail(Worker& worker);
  void release_pipes(Worker& worker);

  Poller& poller_;
  LogPump& pump_;
  const Nanos drain_;
  CrewListener& listener_;
  UniqueFd dev_null_;
  std::list<Worker> workers_;
  std::unordered_map<pid_t, Worker*> by_pid_;  // every leader that was ever cloned
  int num_alive_ = 0;
};

}  // namespace hvd
