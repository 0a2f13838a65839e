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
#include "agent/shim/job_cgroup.h"
#include "agent/shim/log_pump.h"
#include "agent/shim/pmi_wires.h"
#include "agent/shim/poller.h"
#include "agent/shim/remains.h"
#include "agent/shim/worker.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

class CrewListener {
 public:
  virtual ~CrewListener() = default;
  virtual void on_started(const Worker& worker) = 0;
  virtual void on_failed(const Worker& worker) = 0;                // never ran; see worker.failure
  virtual void on_ended(const Worker& worker, Ending ending) = 0;  // its leader has been reaped
  // A piece of what a worker says on its PMI descriptor, before its end.
  virtual void on_pmi(std::uint32_t rank, std::string piece) = 0;
};

class Crew {
 public:
  Crew(Poller& poller, LogPump& pump, Nanos drain, CrewListener& listener);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Each worker in a leaf of the cgroup; nullptr: there is none. Not kept.
  void start(const hvdrun::v1::ShimSpawn& spawn, const JobCgroup* cgroup);

  // The write end of a worker's standard input, where one has a pipe; not valid: none has, or it
  // was taken.
  [[nodiscard]] UniqueFd take_input();

  // To a worker's PMI descriptor; or its end, which it wants itself (MPI_Abort) and which is
  // therefore not noted as a signal of ours.
  void answer_pmi(const hvdrun::v1::ShimPmi& answer);

  // Reaps whatever has ended: leaders are reported, adopted orphans are not. After every SIGCHLD.
  void reap();
  // A child is left, leader or adopted: some descendant lives.
  [[nodiscard]] static bool has_children();

  [[nodiscard]] bool has_living_leader() const { return num_alive_ > 0; }
  // Sessions that are certainly ours: their leaders are unreaped.
  [[nodiscard]] std::set<pid_t> held_sessions() const;

  // Leaders that have ended, and everybody else who was reaped.
  [[nodiscard]] DeadProcesses dead() const;

  // How many it went to.
  int signal_leaders(int signal);
  // Remembers which of the workers a signal has stopped, before the ladder continues them.
  void note_stopped(const std::vector<ProcStat>& members);
  // Every worker's process group, also where the leader is dead and the group is not: then member
  // by member among `members`, because the number alone proves nothing any more.
  void signal_groups(int signal, const std::vector<ProcStat>& members);
  // Whether a process among these is in some worker's group.
  [[nodiscard]] bool has_group_member(const std::vector<ProcStat>& members) const;

 private:
  void start_one(Worker& worker, const hvdrun::v1::WorkerSpec& spec, int pipe_bytes, int cgroup);
  void follow_set_up(Worker& worker);
  void reap_leader(Worker& worker);
  void fail(Worker& worker);
  void release_pipes(Worker& worker);
  [[nodiscard]] bool is_alone_in_group(const Worker& worker) const;

  Poller& poller_;
  LogPump& pump_;
  const Nanos drain_;
  CrewListener& listener_;
  PmiWires pmi_;
  UniqueFd dev_null_;
  const std::string cgroup_mount_ = find_cgroup_mount();
  std::list<Worker> workers_;
  std::unordered_map<pid_t, Worker*> by_pid_;  // every leader that was ever cloned
  std::set<pid_t> reaped_;                     // adopted ones
  int num_alive_ = 0;
};

}  // namespace hvd
