// One run of hvdrun: reaches the nodes, starts the workers, carries their output and ends the job.
//
// Lifecycle: run() once; it returns hvdrun's exit code after everything on the nodes is gone or has
// been given up, and the report has been printed. States: job_state.h. The first cause wins and is
// decided by FirstCause (policy.h). Thread: the loop's.
//
// The parts: job_start.cc (reach, preflight, plan, spawn), job_stage.cc (--stage), job_env.cc,
// job_gpus.cc, job_horovod.cc (what ranks are told), job_fabric.cc, job_nodes.cc (what nodes
// report), job_output.cc (what ranks print), job_signals.cc (signals to hvdrun, standard input),
// job_records.cc (--events, --report), job_watch.cc (workers of the runtime), job_hangs.cc (ranks
// that hang), job_timeline.cc (fetched and merged after the job), job_end.cc (stop, report).
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "launcher/events.h"
#include "launcher/evidence.h"
#include "launcher/fabric_choice.h"
#include "launcher/gpu_stats.h"
#include "launcher/input_reader.h"
#include "launcher/job_state.h"
#include "launcher/line_assembler.h"
#include "launcher/node.h"
#include "launcher/options.h"
#include "launcher/output_writer.h"
#include "launcher/plan.h"
#include "launcher/pmi_fence.h"
#include "launcher/policy.h"
#include "launcher/rank_files.h"
#include "launcher/report.h"
#include "launcher/report_file.h"
#include "launcher/restart.h"
#include "launcher/signals.h"
#include "launcher/silence.h"
#include "launcher/stall.h"
#include "launcher/status_line.h"
#include "launcher/tail.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/transport.h"
#include "proto/registration_desk.h"
#include "proto/rendezvous_store.h"

namespace hvd {

struct MergedTimeline;

class Job {
 public:
  // What hvdrun was given by its caller beside its words.
  struct Surroundings {
    EnvList environment;
    std::string cwd{};               // of hvdrun, absolute
    std::uint64_t core_limit = 0;    // soft RLIMIT_CORE
    std::uint64_t nofile_limit = 0;  // soft RLIMIT_NOFILE; 0: not known
    int events_fd = -1;              // of open_events(); -1: --events is stdout or not wanted
    // Attempts before this one: how each ended, in a sentence.
    std::vector<std::string> earlier_attempts{};
    Nanos pause{};  // before this one; signals and --timeout end it like a job
    // Of the first attempt: --timeout counts from it.
    std::chrono::steady_clock::time_point hvdrun_start = std::chrono::steady_clock::now();
    // Decides about the next one when this one has failed.
    std::function<Restarts::Decision(const AttemptEnd&)> on_failed{};
    const SignalPipe* signals = nullptr;  // not owned, outlives the job
    const StageSource* stage = nullptr;   // of --stage; not owned, outlives the job
  };

  // `plan` is absent if it needs the nodes' GPU counts.
  Job(Loop& loop, Options options, std::optional<Plan> plan, Surroundings surroundings,
      AgentImage agent);
  ~Job();

  Task<int> run();

  // The signal that hvdrun should die of after run(), 0: none.
  [[nodiscard]] int fatal_signal() const { return fatal_signal_; }

 private:
  // --- job.cc: state, causes, timers
  void move(JobEvent event);
  void changed() { changed_.set(); }
  Task<void> wait_for_change(SteadyTime deadline);
  void add_cause(Cause cause);
  void add_own_cause(CauseKind kind, Nanos limit, std::string text);
  [[nodiscard]] bool is_stopping() const { return state_ >= JobState::kStopping; }
  void print_own(std::string_view words);
  void on_stdout_broken(int errno_value);
  void settle();
  Task<void> keep_settling();
  void send_heartbeats();
  void find_silent_nodes();
  Task<void> keep_heartbeat();
  Task<void> keep_timeout();
  Task<void> keep_status();
  [[nodiscard]] std::vector<NodeProgress> progress() const;

  // --- job_signals.cc
  void on_signal(const ReceivedSignal& signal);
  void refuse_suspension();
  void on_stop_signal(const ReceivedSignal& signal);
  void pass_signal(int signal, const char* action);
  void on_signalled(const v1::Signalled& answer);
  void tell_passed(std::uint64_t id);
  Task<void> keep_timeout_signal();
  void start_input();
  [[nodiscard]] Node* node_of(std::uint32_t rank) const;
  void on_input(std::string data, bool is_end, int error);
  void on_input_state(const v1::InputState& state);

  // --- job_records.cc
  void open_events(int fd);
  void print_record(std::string text);
  void record_earlier_attempts();
  void emit(std::string_view event, const nlohmann::ordered_json& fields);
  void prepare_records();
  void note_spawn(const Node& node);
  void note_start(const Node& node, const v1::Started& started);
  void note_end(const Node& node, const v1::ExitReport& report, Nanos time);
  [[nodiscard]] static NodeFacts node_facts(const Node& node);
  [[nodiscard]] RunFacts run_facts(int code, const std::optional<Cause>& cause,
                                   const ReportInput& told) const;
  // `told`: what the last text on stderr was made of.
  void write_records(int code, const std::optional<Cause>& cause, const ReportInput& told);

  // --- job_start.cc
  void make_nodes();
  void assign_ranks();
  // One of each kind, made when first asked for.
  struct Transports {
    std::unique_ptr<Transport> local;
    std::unique_ptr<Transport> command;
    std::unique_ptr<Transport> ssh;
    std::unique_ptr<Transport> tls;
    void abort() const;
  };
  [[nodiscard]] Transport& transport_of(const Node& node, Transports& made);
  Task<void> start();
  Task<void> reach(Node& node);
  void link_up(Node& node);
  [[nodiscard]] v1::Hello hello_for(const Node& node) const;
  Task<bool> wait_for_hellos();
  void report_unreached();
  void tell_reached() const;
  [[nodiscard]] bool check_preflight();
  [[nodiscard]] bool settle_plan();
  [[nodiscard]] bool settle_gpus();
  [[nodiscard]] std::string gpu_claim_of(const Node& node) const;  // job_gpus.cc
  void fail_start(const Error& error);
  void spawn_all();
  [[nodiscard]] v1::Spawn spawn_for(const Node& node) const;
  Task<void> wait_for_workers();

  // --- job_stage.cc
  Task<bool> stage_files();
  void begin_stage(Node& node);
  void on_stage(Node& node, const v1::StageReply& reply);
  void send_staged(Node& node);
  void fail_stage(Node& node, std::string why);
  [[nodiscard]] bool are_all_staged() const;

  // --- job_env.cc: the environment of the ranks, and what failed because of it
  void tell_environment() const;
  void tell_interfaces(const Node& node) const;
  [[nodiscard]] EnvList sent_env() const;
  [[nodiscard]] Result<void> check_exec_sizes() const;
  void explain(Cause& cause, const v1::ExitReport& report) const;

  // --- job_fabric.cc
  [[nodiscard]] std::vector<Node*> planned_nodes() const;
  Task<bool> check_fabric();
  Task<bool> probe(const std::vector<Node*>& planned, const std::vector<std::string>& candidates);
  void take_fabric(const FabricDecision& decision);

  // --- job_horovod.cc
  void settle_horovod(const std::vector<FabricNode>& facts, const FabricCandidates& candidates,
                      const FabricDecision& decision,
                      const std::vector<std::optional<v1::FabricProbeReply>>& probes);
  void add_horovod(const Node& node, v1::Spawn& spawn) const;

  // --- job_nodes.cc
  void on_reply(Node& node, v1::ControlReply reply);
  void on_hello(Node& node, v1::HelloReply reply);
  void on_started(Node& node, const v1::Started& started);
  void on_exit(Node& node, const v1::ExitReport& report);
  void on_success(Node& node, const v1::ExitReport& report, const ClockOffset::Mapped& at);
  void on_finished(Node& node, v1::Finished finished);
  void on_heartbeat(Node& node, const v1::Heartbeat& heartbeat);
  void on_store(Node& node, const v1::StoreRequest& request);
  void send_store_replies(const StoreAnswers& answers);
  void arm_store_timer();
  void on_output(Node& node, const v1::OutputReply& output);
  void on_output_closed(Node& node);
  void submit_output(std::function<void()> on_written);
  void arm_idle_timer();
  void wait_for_idle(SteadyTime deadline);
  void on_link_closed(Node& node, const std::string& why);
  void lose(Node& node, const std::string& why);
  void add_lost_cause(const Node& node, std::string why);
  void add_node_cause(CauseKind kind, const Node& node, std::string why);
  void watch_exit_timeout();
  Task<void> keep_exit_timeout();

  // --- job_output.cc: what the ranks print
  void begin_output(std::uint32_t world_size);
  [[nodiscard]] Result<void> make_files() const;
  [[nodiscard]] std::function<void()> also_to_files(const v1::OutputReply& output,
                                                    std::function<void()> done);
  Task<bool> flush_files(SteadyTime deadline);

  // --- job_watch.cc: the workers of the runtime
  void prepare_watch();
  void begin_watch();
  Task<void> keep_watch();
  void on_registration(Node& node, const v1::StoreRequest& request);
  void settle_registration();
  void on_worker_beats(const v1::WorkerBeats& beats);
  void on_rank_succeeded(std::uint32_t rank);
  void report_stall(StallInspector::Findings findings);
  void notify_workers(v1::WorkerNotice::Kind kind, const std::string& reason);

  // --- job_hangs.cc
  using RankStates = google::protobuf::RepeatedPtrField<v1::RankVitals>;
  void on_vitals(const Node& node, const v1::VitalSigns& signs);
  void note_states(const Node& node, const RankStates& ranks);
  [[nodiscard]] std::string process_text(std::uint32_t rank) const;
  void report_silence(SilenceWatch::Silence silence);
  void name_place(Cause& cause) const;
  void end_hung(Cause cause, std::vector<std::uint32_t> hung);
  Task<void> collect_evidence();
  void ask_evidence(Node& node);
  void on_evidence(Node& node, v1::Evidence evidence);
  void show_evidence();
  void file_evidence();
  void end_for_hung_cause();
  Task<void> keep_gpu_lines();
  void tell_gpus();

  // --- job_reap.cc: nodes that were lost
  [[nodiscard]] std::vector<std::string> words_for_agent(const Node& node) const;
  struct ReapLimits {
    Nanos grace;  // for an agent that is at work
    SteadyTime reached_by;
    SteadyTime deadline;
  };
  void reap_lost(Node& node);
  void reap_unstarted(Node& node);
  void begin_reap(Node& node, ReapLimits limits);
  Task<void> reap(Node& node, ReapLimits limits);
  Task<void> wait_for_reaps();
  void add_node_ends(ReportInput& input) const;

  // --- job_timeline.cc
  void tell_timeline_places() const;
  Task<void> collect_timelines();
  void ask_for_timelines(Node& node);
  [[nodiscard]] bool have_timelines_come() const;
  void on_files(Node& node, const v1::OutputReply& output);
  Task<void> merge_fetched();
  void keep_timelines(const std::string& why);
  void tell_merged(const Result<MergedTimeline>& merged);
  void tell_unfetched() const;

  // --- job_end.cc
  // `is_broken`: a rank is lost, so workers of the runtime abort at once, for this reason.
  void stop_all(Nanos grace, const std::string& reason, bool is_broken);
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] bool have_ranks_gone() const;
  [[nodiscard]] SteadyTime settle_deadline() const;
  Task<void> wait_for_end();
  Task<void> finish_output();
  Task<void> say_bye();
  [[nodiscard]] JobClock job_clock() const;
  [[nodiscard]] ReportInput report_input(const Cause& cause) const;
  [[nodiscard]] std::optional<Cause> proved_cause() const;
  [[nodiscard]] AttemptEnd attempt_end(const Cause& cause) const;
  [[nodiscard]] int conclude();
  Task<void> flush_until(SteadyTime deadline);
  Task<void> flush_report();

  Loop& loop_;
  const Options options_;
  const EnvList environment_;
  const std::uint64_t core_limit_;
  const std::uint64_t nofile_limit_;
  const std::vector<std::string> earlier_;  // attempts
  const std::function<Restarts::Decision(const AttemptEnd&)> on_failed_;
  const AgentImage agent_;
  const StageSource* const stage_;  // not owned; null: nothing is staged
  const std::string job_id_;
  const std::optional<SteadyTime> time_limit_;  // of --timeout
  const SteadyTime start_time_;                 // after the pause
  const SteadyTime start_deadline_;
  const Nanos start_boottime_ = boottime_now();
  const std::string cwd_;
  const std::uint32_t umask_;
  const std::string nonce_;

  std::optional<Plan> plan_;
  Transports transports_;
  Transports reap_transports_;  // the others open nothing any more once the job stops
  OpenList reaps_;
  std::vector<std::unique_ptr<Node>>
      nodes_;  // with their connections, which their transport outlives
  std::string master_addr_;
  std::uint32_t master_port_ = 0;
  std::string horovod_address_;  // of the store for Horovod's ranks; empty: there is none
  std::uint32_t horovod_port_ = 0;
  v1::HorovodStore horovod_store_;

  JobState state_ = JobState::kReaching;
  SteadyTime state_since_ = std::chrono::steady_clock::now();
  std::optional<FirstCause> first_cause_;
  RendezvousStore store_;
  PmiFence pmi_fence_;
  RegistrationDesk desk_;
  StallSettings stall_settings_;
  std::optional<StallInspector> stall_;  // from the plan on
  bool is_watching_ = false;
  std::optional<SilenceWatch> silence_;             // with --stall-timeout, from the plan on
  std::map<std::uint32_t, v1::RankVitals> states_;  // as told last; no letter: it has ended
  std::optional<Cause> hung_cause_;                 // stands, but the nodes are asked first
  bool is_evidence_shown_ = false;
  bool is_hung_cause_told_ = false;
  EvidenceView evidence_view_;
  std::vector<RankEvidence> evidence_;
  GpuStats gpus_;
  std::optional<LineAssembler> lines_;  // from the plan on
  std::optional<Tail> tail_;
  OutputWriter writer_;
  std::unique_ptr<RankFiles> rank_files_;  // with --output-filename, from the plan on
  boost::asio::steady_timer idle_timer_;
  boost::asio::steady_timer store_timer_;
  Event changed_;
  Event ended_;  // run() is over: background coroutines leave
  SignalWatch signals_;
  struct PassedSignal {
    int signal = 0;
    const char* action = "";
    std::size_t num_pending = 0;  // nodes that have not answered
    std::uint32_t num_ranks = 0;
  };
  std::map<std::uint64_t, PassedSignal> passed_signals_;
  std::uint64_t last_signal_id_ = 0;
  std::unique_ptr<InputReader> input_;  // with --stdin, from the spawn on

  std::unique_ptr<EventLog> events_;                    // with --events
  std::vector<RankFacts> rank_facts_;                   // from the plan on
  std::map<std::string, std::string> report_sections_;  // of --report by name: JSON text
  std::map<std::uint32_t, std::string> phases_;         // of ranks that use the runtime, told last
  SteadyTime stop_deadline_ = SteadyTime::max();
  Nanos spawn_boottime_{};  // 0: nothing was spawned
  StopWishes stop_wishes_;
  std::optional<SteadyTime> kill_wished_;  // all to be killed at once
  int fatal_signal_ = 0;
  bool has_told_time_limit_ = false;  // by --timeout-signal
  bool is_leaving_now_ = false;
  bool has_exit_timer_ = false;
  std::uint64_t heartbeat_sequence_ = 0;
  bool is_settling_ = false;           // the first failures name nobody yet
  bool has_told_first_end_ = false;    // that a rank ended with 0 while others run
  std::uint64_t settle_sequence_ = 0;  // the first heartbeat sent after the first failure
  std::vector<StillRank> stood_still_;
  std::uint32_t num_stopped_ = 0;
  std::uint32_t num_failed_ = 0;  // by themselves, the first cause included
};

}  // namespace hvd
