// The start of a job: reach all nodes at once, check, plan, find addresses, spawn.
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/plural.h"
#include "launcher/job.h"
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
constexpr std::uint64_t kOutputCredit = 2 << 20;  // bytes in flight from one node
constexpr std::uint64_t kSpoolCap = 1 << 30;      // bytes that wait on a node's disk
constexpr std::uint32_t kStreamsPerRank = 2;

void add_env(const EnvList& environment, google::protobuf::RepeatedPtrField<v1::EnvVar>* out) {
  for (const auto& [name, value] : environment) {
    v1::EnvVar* variable = out->Add();
    variable->set_name(name);
    variable->set_value(value);
  }
}

std::int64_t to_ms(Nanos duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

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
  auto node = nodes_.begin();
  for (const PlanNode& planned : plan_->nodes) {
    const HostSpec& host = planned.host;
    node = std::find_if(node, nodes_.end(), [&host](const auto& candidate) {
      return candidate->host.name == host.name && candidate->host.user == host.user &&
             candidate->host.port == host.port;
    });
    for (std::uint32_t i = 0; i < planned.num_ranks; ++i) {
      (*node)->ranks.push_back(planned.first_rank + i);
    }
    ++node;
  }
  const auto world_size = static_cast<std::uint32_t>(plan_->ranks.size());
  lines_.emplace(world_size, sink_traits(STDOUT_FILENO, STDERR_FILENO));
  tail_.emplace(world_size);
  prepare_records();
  prepare_watch();
}

void Job::Transports::abort() const {
  for (Transport* transport : {local.get(), command.get(), ssh.get()}) {
    if (transport != nullptr) transport->abort();
  }
}

Transport& Job::transport_of(const Node& node, Transports& made) {
  switch (transport_for(options_, node.host)) {
    case TransportKind::kLocal:
      if (!made.local) made.local = make_local_transport(loop_, agent_);
      return *made.local;
    case TransportKind::kCommand:
      if (!made.command) made.command = make_command_transport(loop_, {options_.rsh, agent_});
      return *made.command;
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
  for (const auto& node : nodes_) {
    boost::asio::co_spawn(loop_, reach(*node), boost::asio::detached);
  }
  const bool all_said_hello = co_await wait_for_hellos();
  if (!all_said_hello) co_return;
  if (!check_preflight() || !settle_plan()) co_return;
  move(JobEvent::kAllHellos);
  const bool has_addresses = co_await check_fabric();
  if (!has_addresses) co_return;
  move(JobEvent::kFabricDone);
  tell_timeline_places();
  spawn_all();
  co_await wait_for_workers();
}

Task<void> Job::reach(Node& node) {
  OpenRequest request;
  request.target = {node.index, node.host.name, node.host.user, node.host.port};
  request.deadline = start_deadline_;
  request.agent_words = words_for_agent(node);
  request.on_phase = [&node](Phase phase) { node.phase = phase; };
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
  node.phase = Phase::kHello;
  node.last_heard = boottime_now();
  node.hello_sent = node.last_heard;
  AgentLink::Handlers handlers;
  handlers.on_reply = [this, &node](v1::ControlReply reply) { on_reply(node, std::move(reply)); };
  handlers.on_output = [this, &node](const v1::OutputReply& output) { on_output(node, output); };
  handlers.on_output_closed = [this, &node] { on_output_closed(node); };
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
  add_env(filter_launcher_env(environment_), hello.mutable_launcher_env());
  add_env(options_.env, hello.mutable_user_env());
  hello.set_cwd(cwd_);
  hello.set_umask(umask_);
  hello.set_spool_cap_bytes(kSpoolCap);
  hello.set_verbose(options_.verbosity >= 2);
  hello.set_wants_timeline(options_.timeline.is_wanted());
  hello.set_stop_signal(options_.signals.stop_signal);
  hello.set_core_limit(core_limit_);
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
    failures.push_back(
        {node->host.label(),
         node->error.value_or(Error{fmt::format("{}: no answer in {} ({})", node->host.label(),
                                                format_duration(steady_clock::now() - start_time_),
                                                phase_name(node->phase)),
                                    ExitCode::kTimeout})});
  }
  add_cause(start_failure(failures, boottime_now()));
}

bool Job::check_preflight() {
  std::vector<NodeHello> hellos;
  for (const auto& node : nodes_) {
    v1::HelloReply reply = *node->hello;
    if (node->connection && reply.agent_path().empty()) {
      reply.set_agent_path(node->connection->agent_path());
    }
    hellos.push_back({node->host.label(), std::move(reply), node->realtime_offset.count()});
  }
  const auto result = check_hellos(hellos, cwd_, options_.command.front());
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
  auto plan =
      make_plan(with_gpu_counts(options_.hosts, num_gpus), options_.np, options_.hosts_source);
  if (!plan) {
    fail_start(plan.error());
    return false;
  }
  for (const std::string& note : plan->notes) log(LogLevel::kInfo, "{}", note);
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
    node->phase = Phase::kSpawn;
    node->num_open_streams = static_cast<std::uint32_t>(node->ranks.size()) * kStreamsPerRank;
    node->link->open_output(job_id_, kOutputCredit);
    v1::ControlRequest request;
    *request.mutable_spawn() = spawn_for(*node);
    node->link->send(std::move(request));
    node->is_spawn_sent = true;
    note_spawn(*node);
  }
  start_input();
}

v1::Spawn Job::spawn_for(const Node& node) const {
  const auto num_nodes = static_cast<std::uint32_t>(plan_->nodes.size());
  v1::Spawn spawn;
  add_env(node_env(job_id_, node.index, master_addr_, master_port_, node.fabric.address),
          spawn.mutable_env());
  add_env(timeline_env(options_.timeline), spawn.mutable_env());
  add_env(node_env_if_unset(static_cast<std::uint32_t>(node.ranks.size()), num_nodes,
                            node.fabric.interface),
          spawn.mutable_env_if_unset());
  const AttemptPlace attempt{static_cast<std::uint32_t>(earlier_.size()), options_.restarts.most};
  for (const std::uint32_t rank : node.ranks) {
    const RankPlace& place = plan_->ranks.at(rank);
    v1::Spawn::Worker* worker = spawn.add_workers();
    worker->set_rank(rank);
    worker->set_local_rank(place.local_rank);
    worker->set_has_input(rank == 0 && options_.signals.passes_input);
    add_env(rank_env(place, attempt), worker->mutable_env());
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
