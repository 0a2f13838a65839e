#include "launcher/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "launcher/argv_scan.h"
#include "launcher/duration.h"
#include "launcher/option_values.h"
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

// What the setters fill: the options and what can only be judged when all of them are known.
struct Draft {
  Options options;
  std::optional<std::string> hosts;
  std::optional<std::string> hostfile;
  bool is_start_timeout_given = false;
  std::optional<nanoseconds> heartbeat;
  const EnvList* environment = nullptr;  // not owned
};

// Puts a parsed value in its place or hands its error on.
template <typename Target, typename Value>
Result<void> assign(Target& target, Result<Value> value) {
  if (!value) return tl::unexpected(std::move(value.error()));
  target = std::move(*value);
  return {};
}

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

Result<void> set_env(Draft& draft, const Occurrence& it) {
  const auto parsed = parse_env_name(it.value);
  if (!parsed) return tl::unexpected(parsed.error());
  const auto& [name, value_at] = *parsed;
  if (value_at != std::string::npos) {
    draft.options.env.emplace_back(name, it.value.substr(value_at));
    return {};
  }
  auto own = find_env(*draft.environment, name);
  if (own) {
    draft.options.env.emplace_back(name, std::move(*own));
  } else {
    draft.options.notes.push_back(
        fmt::format("-x {}: the variable is not set here and is left out", name));
  }
  return {};
}

Result<void> set_rsh(Draft& draft, const Occurrence& it) {
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
  return {};
}

Result<void> set_master_port(Draft& draft, const Occurrence& it) {
  const auto range = parse_port_range(it.value, "--master-port");
  if (!range) return tl::unexpected(range.error());
  std::tie(draft.options.master_port_low, draft.options.master_port_high) = *range;
  return {};
}

Result<void> add_interfaces(Draft& draft, const Occurrence& it) {
  auto interfaces = parse_interfaces(it.value, "--network-interfaces");
  if (!interfaces) return tl::unexpected(interfaces.error());
  auto& all = draft.options.network_interfaces;
  all.insert(all.end(), interfaces->begin(), interfaces->end());
  return {};
}

Result<void> set_host_option(Draft& draft, const Occurrence& it) {
  switch (it.spec->id) {
    case OptionId::kNumProc:
      return assign(draft.options.np, parse_count(it.value, "-np", 1, kMostProcesses));
    case OptionId::kHosts:
      draft.hosts = it.value;
      return {};
    default:
      draft.hostfile = it.value;
      return {};
  }
}

Result<void> set_time_option(Draft& draft, const Occurrence& it) {
  Options& options = draft.options;
  switch (it.spec->id) {
    case OptionId::kStartTimeout:
      draft.is_start_timeout_given = true;
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

Result<void> set_node_option(Draft& draft, const Occurrence& it) {
  Options& options = draft.options;
  switch (it.spec->id) {
    case OptionId::kTransport:
      options.is_transport_given = true;
      return assign_choice(options.transport, it);
    case OptionId::kRsh:
      return set_rsh(draft, it);
    case OptionId::kSshPort:
      return assign(options.ssh_port, parse_port(it.value, "--ssh-port"));
    case OptionId::kSshIdentityFile:
      return assign(options.ssh_identity_file, check_file(it.value, "--ssh-identity-file"));
    case OptionId::kSshConfig:
      return assign(options.ssh_config, check_file(it.value, "--ssh-config"));
    default:
      options.accept_new_host_keys = !it.is_opposite;
      return {};
  }
}

Result<void> set_network_option(Draft& draft, const Occurrence& it) {
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

Result<void> set_information_option(Draft& draft, const Occurrence& it) {
  if (it.spec->id == OptionId::kVerbose) ++draft.options.verbosity;
  if (it.spec->id == OptionId::kDryRun) draft.options.action = Action::kDryRun;
  if (it.spec->id != OptionId::kCompletion) return {};
  std::size_t shell = 0;  // a known one has been answered as a printing action
  return assign(shell, parse_choice(it.value, "--completion", it.spec->choices));
}

Result<void> set_restart_option(Draft& draft, const Occurrence& it) {
  RestartRequest& restarts = draft.options.restarts;
  if (it.spec->id == OptionId::kMaxRestarts) {
    return assign(restarts.most, parse_count(it.value, "--max-restarts", 0, kMostRestarts));
  }
  auto spares = parse_hosts(it.value, &draft.options.notes);
  if (!spares) return tl::unexpected(spares.error().within("--spare"));
  restarts.spares = std::move(*spares);
  return {};
}

// Standard input can be read only once.
Result<void> check_restarts(const Options& options) {
  if (options.restarts.most == 0) {
    if (options.restarts.spares.empty()) return {};
    return make_error(ExitCode::kUsage,
                      "--spare is used by --max-restarts only; add it, or leave --spare out");
  }
  if (!options.signals.passes_input) return {};
  return make_error(ExitCode::kUsage,
                    "--max-restarts cannot give standard input to a second attempt; leave --stdin "
                    "out, or let rank 0 read a file");
}

Result<void> set_option(Draft& draft, const Occurrence& it) {
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
      return set_env(draft, it);
    case OptionGroup::kNodes:
      return set_node_option(draft, it);
    case OptionGroup::kNetwork:
      return set_network_option(draft, it);
    case OptionGroup::kTimeline:
      return set_timeline_option(draft.options.timeline, it);
    case OptionGroup::kRecords:
      return set_record_option(draft.options.records, it);
    case OptionGroup::kInformation:
      return set_information_option(draft, it);
  }
  return {};
}

// The first action that only prints; it needs no command and forgives errors elsewhere.
std::optional<Action> printing_action(const ArgvScan& scan) {
  for (const Occurrence& it : scan.options) {
    switch (it.spec->id) {
      case OptionId::kHelp:
        return Action::kHelp;
      case OptionId::kVersion:
        return Action::kVersion;
      case OptionId::kCheckBuild:
        return Action::kCheckBuild;
      case OptionId::kMan:
        return Action::kManPage;
      case OptionId::kCompletion:
        if (it.value == it.spec->choices.front()) return Action::kBashCompletion;
        break;
      default:
        break;
    }
  }
  return std::nullopt;
}

void note_repeated_options(const ArgvScan& scan, std::vector<std::string>& notes) {
  std::set<OptionId> seen;
  std::set<OptionId> told;
  for (const Occurrence& it : scan.options) {
    if (it.spec->repeat == Repeat::kEach || !it.spec->takes_argument()) continue;
    if (seen.insert(it.spec->id).second || !told.insert(it.spec->id).second) continue;
    notes.push_back(
        fmt::format("{} is given more than once; the last one counts", it.spec->names.front()));
  }
}

Result<void> set_start_timeout_default(Draft& draft) {
  if (draft.is_start_timeout_given) return {};
  const auto found = default_from(OptionId::kStartTimeout, *draft.environment);
  if (!found) return {};
  return assign(draft.options.start_timeout, parse_duration(found->second, found->first));
}

Result<void> set_hosts_from_list(Draft& draft, const ArgvScan& scan) {
  // "-H node1:1 node2:1 true" and "-H node1:1, node2:1 true": the shell cut the list.
  if (!scan.is_separated && !scan.command.empty() && looks_like_host(scan.command.front())) {
    return make_error(ExitCode::kUsage,
                      "`{}` looks like a host; separate hosts by commas, as in -H "
                      "node1:8,node2:8",
                      scan.command.front());
  }
  auto hosts = parse_hosts(*draft.hosts, &draft.options.notes);
  if (!hosts) return tl::unexpected(hosts.error().within("-H"));
  draft.options.hosts_source = fmt::format("-H {}", format_hosts(*hosts));
  draft.options.hosts = std::move(*hosts);
  return {};
}

Result<void> set_hosts_from_file(Draft& draft) {
  const auto text = read_file(*draft.hostfile, "--hostfile");
  if (!text) return tl::unexpected(text.error());
  draft.options.hosts_source = fmt::format("--hostfile {}", *draft.hostfile);
  return assign(draft.options.hosts, parse_hostfile(*text, *draft.hostfile, &draft.options.notes));
}

Result<void> set_hosts(Draft& draft, const ArgvScan& scan) {
  if (draft.hosts && draft.hostfile) {
    return make_error(ExitCode::kUsage,
                      "-H and --hostfile are both given; name the hosts in one of them");
  }
  if (draft.hosts) return set_hosts_from_list(draft, scan);
  if (draft.hostfile) return set_hosts_from_file(draft);
  HostSpec localhost;
  localhost.name = "localhost";
  localhost.slots = draft.options.np;
  draft.options.hosts = {localhost};
  draft.options.hosts_source = "localhost";
  return {};
}

// Several chances to be heard within a lease, however short.
Result<void> set_heartbeat(Draft& draft) {
  Options& options = draft.options;
  options.heartbeat = std::min<nanoseconds>(options.heartbeat, options.lease / 3);
  if (!draft.heartbeat) return {};
  if (*draft.heartbeat >= options.lease) {
    return make_error(ExitCode::kUsage,
                      "--heartbeat-ms {} is not below the lease; lower it or raise --lease",
                      draft.heartbeat->count() / 1000000);
  }
  options.heartbeat = *draft.heartbeat;
  return {};
}

Result<void> check_transport(const Options& options) {
  const bool is_command = options.transport == TransportKind::kCommand;
  if (is_command && options.rsh.empty()) {
    return make_error(ExitCode::kUsage,
                      "--transport command needs a program; name it, as in --rsh 'ssh {{host}}'");
  }
  if (!is_command && !options.rsh.empty()) {
    return make_error(ExitCode::kUsage,
                      "--rsh is used by --transport command only; add --transport command or leave "
                      "--rsh out");
  }
  return {};
}

Result<void> set_command(Draft& draft, ArgvScan& scan) {
  if (scan.command.empty()) {
    return make_error(ExitCode::kUsage,
                      "no COMMAND is given; write hvdrun [OPTION]... COMMAND [ARGUMENT]..., see "
                      "hvdrun --help");
  }
  if (scan.command.front().empty()) {
    return make_error(ExitCode::kUsage, "COMMAND is an empty word; name the program to run");
  }
  draft.options.command = std::move(scan.command);
  return {};
}

Result<void> fill_draft(Draft& draft, ArgvScan& scan) {
  if (scan.error) return tl::unexpected(*scan.error);
  for (const Occurrence& it : scan.options) {
    if (auto set = set_option(draft, it); !set) return set;
  }
  note_repeated_options(scan, draft.options.notes);
  Options& options = draft.options;
  return set_start_timeout_default(draft)
      .and_then(
          [&] { return set_timeline_default(options.timeline, *draft.environment, options.notes); })
      .and_then([&] { return set_hosts(draft, scan); })
      .and_then([&] { return set_heartbeat(draft); })
      .and_then([&] { return check_timeout_signal(options.signals, options.timeout); })
      .and_then([&] { return check_records(options.records); })
      .and_then([&] { return check_restarts(options); })
      .and_then([&] { return check_transport(draft.options); })
      .and_then([&] { return set_command(draft, scan); });
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& argv, const EnvList& environment) {
  ArgvScan scan = scan_argv(argv);
  Draft draft;
  draft.environment = &environment;
  if (const auto action = printing_action(scan)) {
    draft.options.action = *action;
    return std::move(draft.options);
  }
  if (auto filled = fill_draft(draft, scan); !filled) return tl::unexpected(filled.error());
  return std::move(draft.options);
}

Result<Options> parse_options(const std::vector<std::string>& argv) {
  return parse_options(argv, split_environ(environ));
}

std::string version_text() { return "hvdrun " HVDRUN_VERSION "\n"; }

TransportKind transport_for(const Options& options, const HostSpec& host) {
  if (options.is_transport_given && options.transport != TransportKind::kAuto) {
    return options.transport;
  }
  constexpr std::array<std::string_view, 3> kLocalNames = {"localhost", "127.0.0.1", "::1"};
  const bool is_local_name =
      std::find(kLocalNames.begin(), kLocalNames.end(), host.name) != kLocalNames.end();
  const bool is_local = is_local_name && host.user.empty() && host.port == 0;
  return is_local ? TransportKind::kLocal : TransportKind::kSsh;
}

const char* transport_name(TransportKind kind) {
  switch (kind) {
    case TransportKind::kAuto:
      return "auto";
    case TransportKind::kLocal:
      return "local";
    case TransportKind::kCommand:
      return "command";
    case TransportKind::kSsh:
      return "ssh";
  }
  return "";
}

}  // namespace hvd
