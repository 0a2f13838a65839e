#include "launcher/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "launcher/argv_scan.h"
#include "launcher/horovod_options.h"
#include "launcher/host_sources.h"
#include "launcher/hostfile.h"
#include "launcher/option_values.h"
#include "launcher/options_checks.h"
#include "launcher/set_option.h"

namespace hvd {
namespace {

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
        if (it.value == "bash") return Action::kBashCompletion;
        if (it.value == "zsh") return Action::kZshCompletion;
        if (it.value == "fish") return Action::kFishCompletion;
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

Result<void> set_hosts_from_list(OptionsDraft& draft, const ArgvScan& scan) {
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

Result<void> set_hosts_from_file(OptionsDraft& draft) {
  const auto text = read_file(*draft.hostfile, "--hostfile");
  if (!text) return tl::unexpected(text.error());
  draft.options.hosts_source = fmt::format("--hostfile {}", *draft.hostfile);
  return assign(draft.options.hosts, parse_hostfile(*text, *draft.hostfile, &draft.options.notes));
}

Result<void> pick_hosts(OptionsDraft& draft, const ArgvScan& scan) {
  if (draft.hosts && draft.hostfile) {
    return make_error(ExitCode::kUsage,
                      "-H and --hostfile are both given; name the hosts in one of them");
  }
  if (draft.hosts) return set_hosts_from_list(draft, scan);
  if (draft.hostfile) return set_hosts_from_file(draft);
  const auto is_allocated = take_allocation(draft.options, *draft.environment);
  if (!is_allocated) return tl::unexpected(is_allocated.error());
  if (*is_allocated) return {};
  HostSpec localhost;
  localhost.name = "localhost";
  localhost.slots = draft.options.np;
  draft.options.hosts = {localhost};
  draft.options.hosts_source = "localhost";
  return {};
}

Result<void> set_hosts(OptionsDraft& draft, const ArgvScan& scan) {
  return pick_hosts(draft, scan)
      .and_then([&] { return filter_hosts(draft.options, draft.include, draft.exclude); })
      .and_then([&] { return check_gpu_selection(draft.options); });
}

// Several chances to be heard within a lease, however short.
Result<void> set_heartbeat(OptionsDraft& draft) {
  Options& options = draft.options;
  options.heartbeat = std::min<std::chrono::nanoseconds>(options.heartbeat, options.lease / 3);
  if (!draft.heartbeat) return {};
  if (*draft.heartbeat >= options.lease) {
    return make_error(ExitCode::kUsage,
                      "--heartbeat-ms {} is not below the lease; lower it or raise --lease",
                      draft.heartbeat->count() / 1000000);
  }
  options.heartbeat = *draft.heartbeat;
  return {};
}

Result<void> set_command(OptionsDraft& draft, ArgvScan& scan) {
  if (scan.command.empty() && draft.options.action == Action::kShowConfig) return {};
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

// The error with the file or the variable that the last of these options is from.
Error placed(const Error& error, const std::vector<Occurrence>& settings,
             std::initializer_list<OptionId> ids) {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const Occurrence& it) {
    return std::find(ids.begin(), ids.end(), it.spec->id) != ids.end();
  });
  return found == settings.rend() || found->source.empty() ? error : error.within(found->source);
}

Result<void> apply_settings(OptionsDraft& draft) {
  for (const Occurrence& it : draft.options.settings) {
    auto set = set_option(draft, it);
    if (set) continue;
    return it.source.empty() ? set : tl::unexpected(set.error().within(it.source));
  }
  finish_tunables(draft.tunables, *draft.environment, draft.options.notes);
  draft.options.env = std::move(draft.tunables);
  const EnvList given = draft.options.env_request.user_env();
  draft.options.env.insert(draft.options.env.end(), given.begin(), given.end());
  return {};
}

Result<void> fill_draft(OptionsDraft& draft, ArgvScan& scan, const ConfigPlaces& places) {
  if (scan.error) return tl::unexpected(*scan.error);
  Options& options = draft.options;
  note_repeated_options(scan, options.notes);
  return assign(options.settings,
                gather_settings(scan.options, *draft.environment, places, options.notes))
      .and_then([&] { return apply_settings(draft); })
      .map([&] { note_unused_timeline_options(options.timeline, options.notes); })
      .and_then([&] {
        return set_hosts(draft, scan).map_error([&](const Error& error) {
          return placed(error, options.settings, {OptionId::kHosts, OptionId::kHostfile});
        });
      })
      .and_then([&] { return set_heartbeat(draft); })
      .and_then([&] { return check_timeout_signal(options.signals, options.timeout); })
      .and_then([&] { return check_hook_occasion(options, *draft.environment); })
      .and_then([&] { return check_records(options.records, options.timeline.path); })
      .and_then([&] { return check_restarts(options); })
      .and_then([&] { return check_transport(draft.options); })
      .and_then([&] {
        if (options.transport == TransportKind::kTls && options.tls_dir.empty()) {
          options.tls_dir = user_config_folder(*draft.environment) + "/tls";
        }
        return check_tls(options);
      })
      .and_then([&] { return set_command(draft, scan); })
      .and_then([&] { return check_size(options, *draft.environment); })
      .map([&] { note_unused_ssh_options(options, scan); });
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& argv, const EnvList& environment,
                              const ConfigPlaces& places) {
  ArgvScan scan = scan_argv(argv);
  OptionsDraft draft;
  draft.environment = &environment;
  if (const auto action = printing_action(scan)) {
    draft.options.action = *action;
    return std::move(draft.options);
  }
  if (auto filled = fill_draft(draft, scan, places); !filled) return tl::unexpected(filled.error());
  return std::move(draft.options);
}

Result<Options> parse_options(const std::vector<std::string>& argv) {
  const EnvList environment = split_environ(environ);
  return parse_options(argv, environment, default_config_places(environment));
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
    case TransportKind::kTls:
      return "tls";
  }
  return "";
}

}  // namespace hvd
