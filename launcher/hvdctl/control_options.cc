#include "launcher/hvdctl/control_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/option_table.h"
#include "base/shown.h"
#include "launcher/duration.h"
#include "launcher/hostfile.h"
#include "launcher/hostlist.h"
#include "launcher/hvdctl/control_jobs.h"
#include "launcher/option_values.h"
#include "launcher/options.h"
#include "launcher/settings.h"

namespace hvd {
namespace {

constexpr const char* kDefaultSocket = "/run/hvdrun/agent.sock";
constexpr std::size_t kLongestReason = 256;  // bytes

using ControlRow = OptionRow<ControlOptions>;
using ControlTable = OptionTable<ControlOptions>;

struct VerbRow {
  const char* word;
  ControlVerb verb;
  const char* operands;
  const char* help;
};
constexpr VerbRow kVerbs[] = {
    {"nodes", ControlVerb::kNodes, "", "what state the agents are in"},
    {"jobs", ControlVerb::kJobs, "", "what runs there, a line for each job"},
    {"kill", ControlVerb::kKill, "JOB ", "stop a job: its id, or the first 6 digits or more"},
    {"drain", ControlVerb::kDrain, "", "take no new jobs; those that run go on"},
    {"undrain", ControlVerb::kUndrain, "", "take jobs again"},
};

const VerbRow& row_of(ControlVerb verb) {
  return *std::find_if(std::begin(kVerbs), std::end(kVerbs),
                       [verb](const VerbRow& row) { return row.verb == verb; });
}

ControlRow hosts_option() {
  ControlRow row = text_row<ControlOptions>(
      "hosts", "LIST", "ask these nodes, over TLS: node[1-4],node7 (this machine's agent)",
      &ControlOptions::hosts);
  row.letter = 'H';
  return row;
}

ControlRow port_option() {
  return {"tls-port", "PORT", "of the agents (as hvdrun's: 50451)",
          [](const std::string& value, ControlOptions& options) {
            return parse_port(value, "--tls-port").map([&](std::uint16_t port) {
              options.tls_port = port;
            });
          }};
}

ControlRow timeout_option() {
  return {"timeout", "TIME", "for each node, after which it is unreachable (10s)",
          [](const std::string& value, ControlOptions& options) {
            return parse_duration(value, "--timeout").map([&](std::chrono::nanoseconds limit) {
              options.timeout = limit;
            });
          }};
}

// Goes to the node within one line, and from there to other people's terminals.
ControlRow reason_option() {
  return {"reason", "TEXT", "told to everybody whose job is refused",
          [](const std::string& value, ControlOptions& options) -> Result<void> {
            if (value.empty() || value.size() > kLongestReason || shown(value) != value) {
              return make_error(ExitCode::kUsage,
                                "--reason {} is out of place; give 1 to {} bytes on one line, "
                                "without control characters",
                                shown(value), kLongestReason);
            }
            options.reason = value;
            return {};
          }};
}

ControlTable table_of(ControlVerb verb) {
  ControlTable rows = {
      hosts_option(),
      text_row<ControlOptions>("hostfile", "FILE", "ask the nodes that it lists, as with -H",
                               &ControlOptions::hostfile),
      text_row<ControlOptions>("socket", "PATH", "of this machine's agent (/run/hvdrun/agent.sock)",
                               &ControlOptions::socket),
      text_row<ControlOptions>("tls-dir", "DIR",
                               "client.key, client.crt, ca.crt (as hvdrun's: ~/.config/hvdrun/tls)",
                               &ControlOptions::tls_dir),
      port_option(),
      timeout_option(),
  };
  if (verb == ControlVerb::kDrain) rows.push_back(reason_option());
  if (verb == ControlVerb::kNodes || verb == ControlVerb::kJobs) {
    rows.push_back(flag_row<ControlOptions>("json", "for programs", &ControlOptions::is_json));
  }
  rows.push_back(flag_row<ControlOptions>("help", "print this", &ControlOptions::wants_help));
  return rows;
}

// JOB may stand before the options or behind them.
std::string take_job(std::vector<std::string>& words) {
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  std::string job;
  if (words.empty()) return job;
  if (!is_option(words.front())) {
    job = words.front();
    words.erase(words.begin());
  } else if (!is_option(words.back())) {
    job = words.back();
    words.pop_back();
  }
  return job;
}

Result<void> check_together(const ControlOptions& options) {
  if (!options.hosts.empty() && !options.hostfile.empty()) {
    return make_error(ExitCode::kUsage,
                      "-H and --hostfile are both given; name the nodes in one of them");
  }
  const bool has_nodes = !options.hosts.empty() || !options.hostfile.empty();
  if (has_nodes && !options.socket.empty()) {
    return make_error(ExitCode::kUsage,
                      "--socket is this machine's agent, and -H or --hostfile names others; leave "
                      "one of them out");
  }
  if (!has_nodes && (!options.tls_dir.empty() || options.tls_port != 0)) {
    return make_error(ExitCode::kUsage,
                      "--tls-dir and --tls-port are used with -H or --hostfile only; name the "
                      "nodes, or leave them out");
  }
  if (options.socket.size() > kLongestSocketPath) {
    return make_error(ExitCode::kUsage, "--socket: the path has {} bytes, and {} are the most",
                      options.socket.size(), kLongestSocketPath);
  }
  return {};
}

Result<std::vector<HostSpec>> hosts_of(const ControlOptions& options) {
  if (!options.hosts.empty()) {
    return parse_hosts(options.hosts, nullptr).map_error([](const Error& error) {
      return error.within("-H");
    });
  }
  const auto text = read_file(options.hostfile, "--hostfile");
  if (!text) return tl::unexpected(text.error());
  return parse_hostfile(*text, options.hostfile, nullptr);
}

// The last one counts, as for hvdrun.
const Occurrence* last_of(const std::vector<Occurrence>& settings, OptionId id) {
  const auto found = std::find_if(settings.rbegin(), settings.rend(),
                                  [id](const Occurrence& it) { return it.spec->id == id; });
  return found == settings.rend() ? nullptr : &*found;
}

struct TlsPlace {
  std::string folder;
  std::uint16_t port = Options().tls_port;
};

Result<TlsPlace> tls_place(const ControlOptions& options, const EnvList& environment) {
  TlsPlace place;
  std::vector<std::string> notes;
  const auto settings = gather_settings({}, environment, default_config_places(environment), notes);
  if (!settings) return tl::unexpected(settings.error());
  if (const Occurrence* const port = last_of(*settings, OptionId::kTlsPort)) {
    const auto number = parse_port(port->value, "--tls-port");
    if (!number) return tl::unexpected(number.error().within(port->source));
    place.port = *number;
  }
  if (const Occurrence* const folder = last_of(*settings, OptionId::kTlsDir)) {
    place.folder = folder->value;
  }
  if (place.folder.empty()) place.folder = user_config_folder(environment) + "/tls";
  if (!options.tls_dir.empty()) place.folder = options.tls_dir;
  if (options.tls_port != 0) place.port = options.tls_port;
  return place;
}

}  // namespace

bool is_control_verb(std::string_view word) {
  return std::any_of(std::begin(kVerbs), std::end(kVerbs),
                     [word](const VerbRow& row) { return row.word == word; });
}

Result<ControlOptions> parse_control(const std::vector<std::string>& words) {
  const VerbRow& row = *std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                     [&](const VerbRow& one) { return one.word == words.front(); });
  const std::string command = fmt::format("hvdctl {}", row.word);
  std::vector<std::string> rest(words.begin() + 1, words.end());
  std::string job;
  if (row.verb == ControlVerb::kKill) job = take_job(rest);
  auto options = parse_options(table_of(row.verb), command.c_str(), rest);
  if (!options) return options;
  options->verb = row.verb;
  options->job = std::move(job);
  if (options->wants_help) return options;
  if (row.verb == ControlVerb::kKill) {
    if (options->job.empty()) {
      return make_error(ExitCode::kUsage, "hvdctl kill needs a job; see hvdctl kill --help");
    }
    if (auto fits = check_job_word(options->job); !fits) return tl::unexpected(fits.error());
  }
  if (auto fits = check_together(*options); !fits) return tl::unexpected(fits.error());
  return options;
}

std::string control_help(ControlVerb verb) {
  const VerbRow& row = row_of(verb);
  return option_help(table_of(verb),
                     fmt::format("hvdctl {} {}[options]: {}\n", row.word, row.operands, row.help));
}

std::string control_summary() {
  std::string text;
  for (const VerbRow& row : kVerbs) text += fmt::format("  {:<8} {}\n", row.word, row.help);
  return text;
}

Result<ControlTargets> targets_of(const ControlOptions& options, const EnvList& environment) {
  ControlTargets targets;
  targets.socket = options.socket.empty() ? kDefaultSocket : options.socket;
  if (options.hosts.empty() && options.hostfile.empty()) {
    targets.nodes.emplace_back();
    return targets;
  }
  const auto hosts = hosts_of(options);
  if (!hosts) return tl::unexpected(hosts.error());
  auto place = tls_place(options, environment);
  if (!place) return tl::unexpected(place.error());
  targets.tls_dir = std::move(place->folder);
  std::set<std::pair<std::string, std::uint16_t>> seen;
  for (const HostSpec& host : *hosts) {
    const std::uint16_t port = host.port != 0 ? host.port : place->port;
    if (seen.emplace(host.name, port).second) targets.nodes.push_back({host.name, port});
  }
  return targets;
}

}  // namespace hvd
