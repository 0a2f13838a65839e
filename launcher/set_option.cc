#include "launcher/set_option.h"

#include "launcher/duration.h"
#include "launcher/horovod_options.h"
#include "launcher/option_values.h"
#include "launcher/placeholders.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint32_t kMostProcesses = 1U << 20U;
constexpr std::uint32_t kMostRestarts = 1000;
constexpr DurationLimits kGraceLimits = {nanoseconds(0), hours(1)};
constexpr DurationLimits kLeaseLimits = {seconds(1), hours(1)};

template <typename Enum>
Result<void> assign_choice(Enum& target, const Occurrence& it) {
  const auto index = parse_choice(it.value, it.spec->names.front(), it.spec->choices);
  if (!index) return tl::unexpected(index.error());
  target = static_cast<Enum>(*index);
  return {};
}

Result<void> set_duration(nanoseconds& target, const Occurrence& it, DurationLimits limits = {}) {
  return assign(target, parse_duration(it.value, it.spec->names.front(), limits));
}

Result<void> set_rsh(OptionsDraft& draft, const Occurrence& it) {
  auto words = split_words(it.value);
  if (!words) return tl::unexpected(words.error().within(fmt::format("--rsh {}", show(it.value))));
  if (words->empty() || words->front().empty()) {
    return make_error(
        ExitCode::kUsage,
        "--rsh {}: no program is named; write it as in --rsh 'kubectl exec -i {{host}} "
        "--'",
        show(it.value));
  }
  draft.options.rsh = std::move(*words);
  return check_placeholders(draft.options.rsh, {"{host}", "{user}", "{port}", "{command}"},
                            "--rsh");
}

Result<void> set_master_port(OptionsDraft& draft, const Occurrence& it) {
  const auto range = parse_port_range(it.value, "--master-port");
  if (!range) return tl::unexpected(range.error());
  std::tie(draft.options.master_port_low, draft.options.master_port_high) = *range;
  return {};
}

Result<void> add_interfaces(OptionsDraft& draft, const Occurrence& it) {
  auto interfaces = parse_interfaces(it.value, "--network-interfaces");
  if (!interfaces) return tl::unexpected(interfaces.error());
  auto& all = draft.options.network_interfaces;
  all.insert(all.end(), interfaces->begin(), interfaces->end());
  return {};
}

Result<void> set_host_option(OptionsDraft& draft, const Occurrence& it) {
  switch (it.spec->id) {
    case OptionId::kNumProc:
      return assign(draft.options.np, parse_count(it.value, "-np", 1, kMostProcesses));
    case OptionId::kHosts:
      draft.hosts = it.value;
      return {};
    case OptionId::kInclude:
      draft.include = it.value;
      return {};
    case OptionId::kExclude:
      draft.exclude = it.value;
      return {};
    case OptionId::kRankOrder:
      return assign_choice(draft.options.rank_order, it);
    case OptionId::kOneGpuPerRank:
      draft.options.is_one_gpu_per_rank = !it.is_opposite;
      return {};
    default:
      draft.hostfile = it.value;
      return {};
  }
}

Result<void> set_time_option(OptionsDraft& draft, const Occurrence& it) {
  Options& options = draft.options;
  switch (it.spec->id) {
    case OptionId::kStartTimeout:
      return set_duration(options.start_timeout, it);
    case OptionId::kTimeout:
      return set_duration(options.timeout.emplace(), it);
    case OptionId::kExitTimeout:
      return set_duration(options.exit_timeout.emplace(), it);
    case OptionId::kGrace:
      return set_duration(options.grace, it, kGraceLimits);
    case OptionId::kLease:
      return set_duration(options.lease, it, kLeaseLimits);
    default: {
      const auto count = parse_count(it.value, "--heartbeat-ms", 1, 60000);
      if (!count) return tl::unexpected(count.error());
      draft.heartbeat = milliseconds(*count);
      return {};
    }
  }
}

Result<void> set_node_option(OptionsDraft& draft, const Occurrence& it) {
  Options& options = draft.options;
  switch (it.spec->id) {
    case OptionId::kTransport:
      options.is_transport_given = true;
      return assign_choice(options.transport, it);
    case OptionId::kRsh:
      return set_rsh(draft, it);
    case OptionId::kTlsPort:
      return assign(options.tls_port, parse_port(it.value, "--tls-port"));
    case OptionId::kTlsDir:
      options.tls_dir = it.value;
      return {};
    case OptionId::kAgentRunning:
      options.is_agent_running = !it.is_opposite;
      return {};
    case OptionId::kSshPort:
      return assign(options.ssh_port, parse_port(it.value, "--ssh-port"));
    case OptionId::kSshIdentityFile:
      return assign(options.ssh_identity_file, check_file(it.value, "--ssh-identity-file"));
    case OptionId::kStage:
      options.stage.push_back(it.value);
      return {};
    case OptionId::kSshConfig:
      return assign(options.ssh_config, check_file(it.value, "--ssh-config"));
    default:
      options.accept_new_host_keys = !it.is_opposite;
      return {};
  }
}

Result<void> set_network_option(OptionsDraft& draft, const Occurrence& it) {
  switch (it.spec->id) {
    case OptionId::kMasterPort:
      return set_master_port(draft, it);
    case OptionId::kMasterAddr:
      return assign(draft.options.master_addr, parse_address(it.value, "--master-addr"));
    case OptionId::kNetworkInterfaces:
      return add_interfaces(draft, it);
    default:
      return assign_choice(draft.options.fabric, it);
  }
}

Result<void> set_information_option(OptionsDraft& draft, const Occurrence& it) {
  if (it.spec->id == OptionId::kVerbose && !it.is_opposite) ++draft.options.verbosity;
  if (it.spec->id == OptionId::kDryRun) draft.options.action = Action::kDryRun;
  if (it.spec->id != OptionId::kCompletion) return {};
  std::size_t shell = 0;  // a known one has been answered as a printing action
  return assign(shell, parse_choice(it.value, "--completion", it.spec->choices));
}

Result<void> set_restart_option(OptionsDraft& draft, const Occurrence& it) {
  RestartRequest& restarts = draft.options.restarts;
  if (it.spec->id == OptionId::kMaxRestarts) {
    return assign(restarts.most, parse_count(it.value, "--max-restarts", 0, kMostRestarts));
  }
  auto spares = parse_hosts(it.value, &draft.options.notes);
  if (!spares) return tl::unexpected(spares.error().within("--spare"));
  restarts.spares = std::move(*spares);
  return {};
}

}  // namespace

Result<void> set_option(OptionsDraft& draft, const Occurrence& it) {
  switch (it.spec->group) {
    case OptionGroup::kHosts:
      return set_host_option(draft, it);
    case OptionGroup::kTime:
      return set_time_option(draft, it);
    case OptionGroup::kSignals:
      return set_signal_option(draft.options.signals, it);
    case OptionGroup::kHangs:
      return set_watch_option(draft.options.watch, it);
    case OptionGroup::kRestarts:
      return set_restart_option(draft, it);
    case OptionGroup::kEnvironment:
      return set_environment_option(draft.options.env_request, it, *draft.environment,
                                    draft.options.notes);
    case OptionGroup::kNodes:
      return set_node_option(draft, it);
    case OptionGroup::kNetwork:
      return set_network_option(draft, it);
    case OptionGroup::kTimeline:
      return set_timeline_option(draft.options.timeline, it);
    case OptionGroup::kRecords:
      return set_record_option(draft.options.records, it);
    case OptionGroup::kOutput:
      return set_output_option(draft.options.output, it);
    case OptionGroup::kTuning:
      return set_tunable(draft.tunables, it);
    case OptionGroup::kForeign:
      return check_foreign(it, draft.options.notes);
    case OptionGroup::kConfiguration:
      if (it.spec->id == OptionId::kShowConfig) draft.options.action = Action::kShowConfig;
      return {};  // the file has been read
    case OptionGroup::kInformation:
      return set_information_option(draft, it);
  }
  return {};
}

}  // namespace hvd
