// The one job of an agent: the launcher's two calls on one side, the shim on the other, the
// workers' store calls and their output in between. What is done when is the table in job_state.h.
//
// Lifecycle: made after the shim was started, start() once gRPC may, run by the loop until on_end,
// after which it may be destroyed, though not within that call. Thread: the loop's; everything that
// comes from another thread is posted to it.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/beat_book.h"
#include "agent/cgroup_place.h"
#include "agent/earlier_jobs.h"
#include "agent/evidence_collector.h"
#include "agent/gpu_memory.h"
#include "agent/gpu_watch.h"
#include "agent/horovod_server.h"
#include "agent/job_state.h"
#include "agent/kernel_log.h"
#include "agent/leftovers.h"
#include "agent/master_port.h"
#include "agent/output_queue.h"
#include "agent/pmi_desk.h"
#include "agent/rendezvous_edge.h"
#include "agent/service_edge.h"
#include "agent/shim_watch.h"
#include "agent/stage_intake.h"
#include "agent/store_relay.h"
#include "agent/timeline_files.h"
#include "agent/vital_book.h"
#include "base/limit_timer.h"
#include "base/log.h"
#include "base/loop.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/worker_env.h"

namespace hvd {

class Job {
 public:
  struct Config {
    EnvList node_env;  // as the agent was given it
    CgroupPlace cgroup;
    Nanos hello_timeout = std::chrono::minutes(2);  // a launcher that never says hello
    std::function<void()> on_end;                   // nothing of the job is left here
    // No process of it is left here; the launcher has not been told yet. May be empty.
    std::function<void()> on_ranks_gone = {};
    // A process that SIGKILL did not end; before on_end.
    std::function<void(const hvdrun::v1::Survivor&)> on_survivor;
  };

  Job(Loop& loop, ShimProcess shim, Config config);

  // Serves the launcher's stream.
  [[nodiscard]] Result<void> start(UniqueFd stream);

  // The stream, or what carries it, has ended.
  void take_stream_end();

  // Somebody else than the launcher ends the job on this node: the ladder, and the launcher is told
  // why. It still says goodbye, or is not waited for.
  void stop(const std::string& reason);

  // How long that takes at most.
  [[nodiscard]] Nanos stop_limit() const;

  // One line of our own log: a notice for the launcher once it has our hello, else stderr.
  void take_log(LogLevel level, const std::string& text);

  // What ended it: "bye", "stream end", "lease over", "shim gone".
  [[nodiscard]] const char* ending() const { return ending_; }

 private:
  // job.cc: states and actions
  void handle(JobEvent event);
  void run(JobAction action);
  void configure();
  void spawn();
  void stop_shim();
  void await_shim();
  void report_lost();
  void sweep_leftovers(Leftovers::Done done);
  void let_go();
  void close();
  void shut_down();
  void refuse(const std::string& text);
  void watch_hang_up(int stream);
  void watch_lease();

  // job_messages.cc: what comes in from either side
  void take_control(hvdrun::v1::ControlRequest&& request);
  void take_heartbeat(const hvdrun::v1::Heartbeat& heartbeat);
  void take_output_request(const hvdrun::v1::OutputRequest& request);
  void take_shim_message(hvdrun::v1::FromShim&& message);
  void take_ready(const hvdrun::v1::ShimReady& ready);
  void add_port_holder(hvdrun::v1::ExitReport* report) const;
  static void add_process_limit(hvdrun::v1::ExitReport* report);
  void take_finished(hvdrun::v1::Finished&& finished);
  void take_log_chunk(hvdrun::v1::LogChunk&& chunk);
  void pass_input(const hvdrun::v1::OutputRequest& request);
  void send_kernel_facts();
  void end_shim_batch();
  void send_output();
  void probe(const hvdrun::v1::FabricProbe& request);

  // job_watch.cc: the workers of the runtime
  void take_stop(const hvdrun::v1::Stop& stop);
  void take_beat(const hvdrun::v1::WorkerBeat& beat, pid_t pid);
  void arm_beats();
  void send_beats();

  // job_vitals.cc: what is seen of the ranks from outside, and of the GPUs
  void start_vitals();
  void note_started(std::uint32_t rank, pid_t pid);
  void note_ended(std::uint32_t rank);
  void look_at_ranks();
  void add_vitals(hvdrun::v1::Heartbeat* heartbeat);
  void take_collect(const hvdrun::v1::CollectEvidence& request);
  [[nodiscard]] EnvList outside_env() const;
  [[nodiscard]] std::string cgroup() const;

  // job_earlier.cc: what earlier jobs have left here
  void look_at_earlier_jobs();
  void tell_earlier(const std::vector<EarlierJob>& jobs);
  [[nodiscard]] bool holds(hvdrun::v1::ControlRequest::MessageCase kind) const;
  void let_held_go();

  // job_horovod.cc: the store of Horovod's ranks, on node 0
  void open_horovod(const hvdrun::v1::FabricListen& request, hvdrun::v1::FabricListenReply* reply);
  void serve_horovod(const hvdrun::v1::HorovodStore& store);

  // job_timeline.cc
  [[nodiscard]] Result<void> make_timeline_dir();
  void take_fetch();
  void send_files();
  void leave_timeline();

  // job_stage.cc
  [[nodiscard]] Result<void> make_staged_dir();
  void take_stage(hvdrun::v1::StageRequest&& request);
  void tell_staged(const std::string& error);

  Loop& loop_;
  const Config config_;
  ServiceEdge service_;
  StoreRelay store_;
  BeatBook beats_;
  RendezvousEdge rendezvous_;
  ShimWatch shim_;
  MasterPort master_port_;
  HorovodServer horovod_;
  GpuMemory gpu_memory_;
  GpuQuestion earlier_gpus_;  // what earlier jobs hold
  boost::asio::posix::stream_descriptor hang_up_;
  LimitTimer lease_timer_;  // of the hello, then of the lease
  LimitTimer leave_timer_;
  LimitTimer stop_timer_;
  LimitTimer beat_timer_;    // runs while the book has a worker
  LimitTimer vitals_timer_;  // runs while ranks are looked at
  std::optional<Leftovers> leftovers_;

  JobState state_ = JobState::kNew;
  const char* ending_ = "";                       // the first event that led to its end
  LogLevel log_level_ = LogLevel::kWarning;       // of what the launcher wants to hear
  Nanos entered_;                                 // the state; boot time
  hvdrun::v1::ControlRequest request_;            // being handled
  bool is_telling_earlier_ = false;               // what earlier jobs hold
  std::vector<hvdrun::v1::ControlRequest> held_;  // until it is told
  hvdrun::v1::Hello hello_;
  hvdrun::v1::HelloReply hello_reply_;  // waits for the shim to be ready
  bool is_hello_answered_ = false;
  bool is_finished_seen_ = false;
  bool has_launcher_said_bye_ = false;
  std::string stopped_by_;  // by whom but the launcher
  std::string job_dir_;
  UniqueFd job_dir_lock_;                        // says that it is in use
  std::string timeline_dir_;                     // empty: none is wanted
  std::optional<TimelineFiles> timeline_files_;  // once they were asked for
  std::optional<StageIntake> intake_;            // from the first request of Stage on
  Nanos last_heartbeat_{0};
  std::optional<KernelLog> kernel_log_;  // from the hello on
  std::optional<OutputQueue> output_;
  std::uint64_t early_credit_ = 0;                 // given before the hello
  std::uint64_t unacknowledged_ = 0;               // log bytes taken over in this batch
  std::map<std::uint32_t, std::int32_t> running_;  // rank -> pid
  std::map<std::uint32_t, std::string> bindings_;  // rank -> where it is bound, if asked for
  bool is_beat_timer_set_ = false;
  std::unique_ptr<PmiDesk> pmi_;                 // where workers have a PMI descriptor
  std::optional<VitalBook> vitals_;              // where they are wanted
  std::optional<GpuWatch> gpus_;                 // where wanted, while ranks run
  std::unique_ptr<EvidenceCollector> evidence_;  // once it is wanted
  int num_servers_down_ = 0;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // for a probe that outlives this
};

}  // namespace hvd
