// The start of a job: reach all nodes at once, check, plan, find addresses, spawn.
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/plural.h"
#include "launcher/env_message.h"
#include "launcher/gpu_choice.h"
#include "launcher/horovod_contract.h"
#include "launcher/job.h"
#include "launcher/local_rank_word.h"
#include "launcher/plan_notes.h"
#include "launcher/pmi_world.h"
#include "launcher/preflight.h"
#include "launcher/status_line.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// After the first definite error the other nodes get this long to tell theirs, so that all are
// reported in one go.
constexpr Nanos kGatherErrors = seconds(3);
constexpr Nanos kAgentMargin = seconds(10);       // beside the grace, for an agent to clean up
constexpr std::uint64_t kOutputCredit = 2 << 20;  // bytes in flight from one node
constexpr std::uint64_t kSpoolCap = 1 << 30;      // bytes that wait on a node's disk
constexpr std::uint32_t kStreamsPerRank = 2;

}  // namespace

void Job::make_nodes() {
  const auto add = [this](const HostSpec& host) {
    auto node = std::make_unique<Node>();
    node->index = static_cast<std::uint32_t>(nodes_.size());
    node->host = host;
    nodes_.push_back(std::move(node));
  };
  if (plan_) {
    for (const PlanNode& planned : plan_->nodes) add(planned.host);
  } else {
    for (const HostSpec& host : options_.hosts) add(host);
  }
  first_cause_.emplace(static_cast<std::uint32_t>(nodes_.size()));
  if (plan_) assign_ranks();
}

// The plan leaves out hosts without a rank; the order is the same.
void Job::assign_ranks() {
  make_hosts_distinct(plan_->ranks);
  auto node = nodes_.begin();
  for (const PlanNode& planned : plan_->nodes) {
    const HostSpec& host = planned.host;
    node = std::find_if(node, nodes_.end(), [&host](const auto& candidate) {
      return candidate->host.name == host.name && candidate->host.user == host.user &&
             candidate->host.port == host.port;
    });
    (*node)->ranks = planned.ranks;
    ++node;
  }
  const auto world_size = static_cast<std::uint32_t>(plan_->ranks.size());
  begin_output(world_size);
  tail_.emplace(world_size);
  prepare_records();
  prepare_watch();
}

void Job::Transports::abort() const {
  for (Transport* transport : {local.get(), command.get(), ssh.get(), tls.get()}) {
    if (transport != nullptr) transport->abort();
  }
}

Transport& Job::transport_of(const Node& node, Transports& made) {
  switch (transport_for(options_, node.host)) {
    case TransportKind::kLocal:
      if (!made.local) {
        made.local = make_local_transport(loop_, agent_, options_.grace + kAgentMargin);
      }
      return *made.local;
    case TransportKind::kCommand:
      if (!made.command) {
        made.command =
            make_command_transport(loop_, {options_.rsh, agent_, options_.is_agent_running});
      }
      return *made.command;
    case TransportKind::kTls:
      if (!made.tls) {
        made.tls = make_tls_transport(
            loop_, {user_files_in(options_.tls_dir), options_.tls_port, options_.lease});
      }
      return *made.tls;
    case TransportKind::kSsh:
    case TransportKind::kAuto:
      break;
  }
  if (!made.ssh) {
    made.ssh = make_ssh_transport(
        loop_, {options_.ssh_config, options_.ssh_identity_file, options_.ssh_port,
                options_.accept_new_host_keys, options_.lease, agent_});
  }
  return *made.ssh;
}

Task<void> Job::start() {
  log(LogLevel::kInfo, "job {}: starting {} on {}", job_id_,
      plan_ ? counted(plan_->ranks.size(), "rank") : "a rank for each GPU",
      counted(nodes_.size(), "host"));
  tell_environment();
  for (const auto& node : nodes_) {
    boost::asio::co_spawn(loop_, reach(*node), boost::asio::detached);
  }
  const bool all_said_hello = co_await wait_for_hellos();
  if (!all_said_hello) co_return;
  const bool are_staged = co_await stage_files();
  if (!are_staged) co_return;
  tell_reached();
  if (!check_preflight() || !settle_plan() || !settle_gpus()) co_return;
  move(JobEvent::kAllHellos);
  const bool has_addresses = co_await check_fabric();
  if (!has_addresses) co_return;
  move(JobEvent::kFabricDone);
  tell_timeline_places();
  if (const auto made = make_files(); !made) {
    fail_start(made.error());
    co_return;
  }
  spawn_all();
  co_await wait_for_workers();
}

Task<void> Job::reach(Node& node) {
  OpenRequest request;
  request.target = {node.index, node.host.name, node.host.user, node.host.port, node.host.key};
  request.deadline = start_deadline_;
  request.agent_words = words_for_agent(node);
  if (transport_for(options_, node.host) == TransportKind::kTls) {
    request.agent_words.insert(request.agent_words.end(), {"--gpus", gpu_claim_of(node)});
    if (!node.host.user.empty()) {
      request.agent_words.insert(request.agent_words.end(), {"--user", node.host.user});
    }
  }
  request.on_phase = [&node](Phase phase) { node.phases.enter(phase, boottime_now()); };
  auto connection = co_await transport_of(node, transports_).open(std::move(request));
  if (!connection) {
    node.error = connection.error();
  } else if (!is_stopping()) {
    node.connection = std::move(*connection);
    link_up(node);
  }
  changed();
}

void Job::link_up(Node& node) {
  node.last_heard = boottime_now();
  node.phases.enter(Phase::kHello, node.last_heard);
  node.hello_sent = node.last_heard;
  AgentLink::Handlers handlers;
  handlers.on_reply = [this, &node](v1::ControlReply reply) { on_reply(node, std::move(reply)); };
  handlers.on_output = [this, &node](const v1::OutputReply& output) { on_output(node, output); };
  handlers.on_output_closed = [this, &node] { on_output_closed(node); };
  handlers.on_stage = [this, &node](const v1::StageReply& reply) { on_stage(node, reply); };
  handlers.on_stage_idle = [this, &node] { send_staged(node); };
  handlers.on_closed = [this, &node](const std::string& why) { on_link_closed(node, why); };
  node.link = std::make_unique<AgentLink>(loop_, node.connection->take_stream(), node.host.label(),
                                          std::move(handlers));
  v1::ControlRequest request;
  *request.mutable_hello() = hello_for(node);
  node.link->send(std::move(request));
}

v1::Hello Job::hello_for(const Node& node) const {
  v1::Hello hello;
  hello.set_launcher_version(HVDRUN_VERSION);
  hello.set_job_id(job_id_);
  hello.set_node(node.index);
  hello.set_lease_ms(to_ms(options_.lease));
  hello.set_grace_ms(to_ms(options_.grace));
  hello.set_heartbeat_ms(to_ms(options_.heartbeat));
  for (const std::string& word : options_.command) hello.add_argv(word);
  const std::vector<EnvRule>& rules = options_.env_request.rules;
  add_env(filter_launcher_env(environment_, rules), hello.mutable_launcher_env());
  add_env(options_.env, hello.mutable_user_env());
  // An agent on this machine, or one that srun starts, has our environment as its own.
  const TransportKind transport = transport_for(options_, node.host);
  const bool is_by_srun = transport == TransportKind::kCommand && options_.rsh.front() == "srun";
  if (transport == TransportKind::kLocal || is_by_srun) {
    for (std::string& name : kept_from_local_ranks(environment_, rules)) {
      hello.add_kept_from_ranks(std::move(name));
    }
  }
  add_env(node.host.env, hello.mutable_user_env());
  hello.set_cwd(cwd_);
  hello.set_umask(umask_);
  hello.set_spool_cap_bytes(kSpoolCap);
  hello.set_verbose(options_.verbosity >= 2);
  hello.set_wants_timeline(options_.timeline.is_wanted());
  hello.set_stop_signal(options_.signals.stop_signal);
  hello.set_core_limit(core_limit_);
  hello.set_wants_stage(stage_ != nullptr);
  hello.set_nofile_limit(nofile_limit_);
  if (const auto limit = options_.watch.stall_timeout) {
    hello.set_vitals_ms(to_ms(SilenceWatch::look_period(*limit)));
  }
  if (const auto period = options_.watch.gpu_period) hello.set_gpu_stats_ms(to_ms(*period));
  if (node.index == 0) {
    v1::FabricListen* listen = hello.mutable_fabric_listen();
    listen->set_port_low(options_.master_port_low);
    listen->set_port_high(options_.master_port_high);
    listen->set_nonce(nonce_);
    listen->set_listen(nodes_.size() > 1 && options_.fabric != FabricMode::kSkip);
    listen->set_horovod_address(horovod_listen_address(
        nodes_.size(), {options_.fabric, options_.network_interfaces, options_.master_addr}));
  }
  return hello;
}

// Until every node has said hello. False: a cause stands, from here or from a signal.
Task<bool> Job::wait_for_hellos() {
  SteadyTime deadline = start_deadline_;
  while (!is_stopping()) {
    const auto is_settled = [](const auto& node) { return node->is_reached() || node->error; };
    const bool all_settled = std::all_of(nodes_.begin(), nodes_.end(), is_settled);
    const bool any_error = std::any_of(nodes_.begin(), nodes_.end(),
                                       [](const auto& node) { return node->error.has_value(); });
    const SteadyTime now = steady_clock::now();
    if (any_error) deadline = std::min(deadline, now + kGatherErrors);
    if (all_settled && !any_error) co_return true;
    if (all_settled || now >= deadline) break;
    co_await wait_for_change(deadline);
  }
  if (!is_stopping()) report_unreached();
  co_return false;
}

// One cause for all nodes that did not come up: what they said, or where they hang.
void Job::report_unreached() {
  std::vector<NodeFailure> failures;
  for (const auto& node : nodes_) {
    if (node->is_reached()) continue;
    reap_unstarted(*node);
    const std::string spent = format_duration(steady_clock::now() - start_time_);
    const Phase phase = node->phases.current();
    std::string why =
        phase == Phase::kTurn
            ? fmt::format("still waiting for its turn after {}; see --start-timeout", spent)
            : fmt::format("no answer in {} ({})", spent, phase_name(phase));
    failures.push_back(
        {node->host.label(), node->error.value_or(Error{node->host.label() + ": " + std::move(why),
                                                        ExitCode::kTimeout})});
  }
  add_cause(start_failure(failures, boottime_now()));
}

// Where the time went until every node was ready by itself.
void Job::tell_reached() const {
  const auto& slowest =
      *std::max_element(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) {
        return a->phases.time_until_ready() < b->phases.time_until_ready();
      });
  for (const auto& node : nodes_) {
    log(LogLevel::kDebug, "{}: ready after {}: {}", node->host.label(),
        format_duration(node->phases.time_until_ready()), node->phases.text());
  }
  log(LogLevel::kInfo, "{} ready in {}, {}{}", counted(nodes_.size(), "host"),
      format_duration(steady_clock::now() - start_time_),
      nodes_.size() > 1 ? fmt::format("the last one was {}: ", slowest->host.label()) : "",
      slowest->phases.text());
}

bool Job::check_preflight() {
  std::vector<NodeHello> hellos;
  for (const auto& node : nodes_) {
    v1::HelloReply reply = *node->hello;
    if (node->connection && reply.agent_path().empty()) {
      reply.set_agent_path(node->connection->agent_path());
    }
    const bool is_by_ssh = transport_for(options_, node->host) == TransportKind::kSsh;
    hellos.push_back(
        {node->host.label(), std::move(reply), node->realtime_offset.count(), is_by_ssh});
  }
  if (auto fits = check_exec_sizes(); !fits) {
    fail_start(fits.error());
    return false;
  }
  const RankLimits limits{nofile_limit_, core_limit_};
  const auto result = check_hellos(hellos, cwd_, options_.command.front(), limits);
  if (!result) {
    fail_start(result.error());
    return false;
  }
  for (const std::string& text : result->details) log(LogLevel::kDebug, "{}", text);
  for (const std::string& text : result->notes) log(LogLevel::kInfo, "{}", text);
  for (const std::string& text : result->warnings) log(LogLevel::kWarning, "{}", text);
  return true;
}

// Plans that needed the nodes' GPU counts are made here.
bool Job::settle_plan() {
  if (plan_) return true;
  std::vector<std::uint32_t> num_gpus;
  for (const auto& node : nodes_) num_gpus.push_back(node->hello->num_gpus());
  auto plan = make_plan(with_gpu_counts(options_.hosts, num_gpus), options_.np,
                        options_.hosts_source, options_.rank_order);
  if (!plan) {
    fail_start(plan.error());
    return false;
  }
  tell_notes(*plan);
  plan_ = std::move(*plan);
  assign_ranks();
  return true;
}

void Job::fail_start(const Error& error) {
  add_cause(start_failure({{"", error}}, boottime_now()));
}

void Job::spawn_all() {
  spawn_boottime_ = boottime_now();
  for (const auto& node : nodes_) {
    if (node->ranks.empty()) continue;
    node->phases.enter(Phase::kSpawn, spawn_boottime_);
    node->num_open_streams = static_cast<std::uint32_t>(node->ranks.size()) * kStreamsPerRank;
    node->link->open_output(job_id_, kOutputCredit);
    v1::ControlRequest request;
    *request.mutable_spawn() = spawn_for(*node);
    node->link->send(std::move(request));
    node->is_spawn_sent = true;
    note_spawn(*node);
    tell_interfaces(*node);
    pmi_fence_.expect(node->index);
  }
  start_input();
}

v1::Spawn Job::spawn_for(const Node& node) const {
  const auto num_nodes = static_cast<std::uint32_t>(plan_->nodes.size());
  v1::Spawn spawn;
  add_env(node_env(job_id_, node.index, master_addr_, master_port_, node.fabric.address),
          spawn.mutable_env());
  if (options_.env_request.is_torchelastic) {
    add_env(torchelastic_env(job_id_), spawn.mutable_env());
  }
  add_env(timeline_env(options_.timeline), spawn.mutable_env());
  add_env(selected_gpus_env(node.host), spawn.mutable_env());
  add_env(node_env_if_unset(static_cast<std::uint32_t>(node.ranks.size()), num_nodes,
                            node.fabric.interface),
          spawn.mutable_env_if_unset());
  spawn.set_bind(options_.env_request.bind);
  spawn.set_tell_bindings(options_.env_request.reports_bindings);
  spawn.set_extra_word_at(static_cast<std::uint32_t>(local_rank_place(options_.command)));
  add_horovod(node, spawn);
  if (options_.env_request.answers_pmi) {
    *spawn.mutable_pmi() = pmi_world(*plan_);
    add_env(pmi_env_if_unset(num_nodes, node.hello->has_rdma(), node.fabric.interface),
            spawn.mutable_env_if_unset());
  }
  const AttemptPlace attempt{static_cast<std::uint32_t>(earlier_.size()), options_.restarts.most};
  for (const std::uint32_t rank : node.ranks) {
    const RankPlace& place = plan_->ranks.at(rank);
    v1::Spawn::Worker* worker = spawn.add_workers();
    worker->set_rank(rank);
    worker->set_local_rank(place.local_rank);
    worker->set_has_input(rank == 0 && options_.signals.passes_input);
    worker->set_no_core(rank != 0 && options_.env_request.core_dumps == CoreDumps::kRank0);
    add_env(rank_env(place, attempt), worker->mutable_env());
    if (const std::string& option = options_.env_request.local_rank_option; !option.empty()) {
      worker->set_extra_word(
          fmt::format("{}={}", option, options_.is_one_gpu_per_rank ? 0 : place.local_rank));
    }
    if (options_.env_request.answers_pmi) add_env(pmi_env(place), worker->mutable_env());
    if (options_.is_one_gpu_per_rank) {
      add_env(one_gpu_env(node.gpus.at(place.local_rank)), worker->mutable_env());
    }
  }
  return spawn;
}

Task<void> Job::wait_for_workers() {
  const auto is_up = [](const auto& node) {
    return node->num_started + node->num_exited >= node->ranks.size() || node->is_lost;
  };
  while (!is_stopping() && !std::all_of(nodes_.begin(), nodes_.end(), is_up)) {
    if (steady_clock::now() >= start_deadline_) {
      add_own_cause(CauseKind::kStartTimeout, options_.start_timeout, pending_text(progress()));
      co_return;
    }
    co_await wait_for_change(start_deadline_);
  }
  if (is_stopping()) co_return;
  move(JobEvent::kAllStarted);
  log(LogLevel::kInfo, "{} started in {}", counted(plan_->ranks.size(), "rank"),
      format_duration(steady_clock::now() - start_time_));
}

}  // namespace hvd
