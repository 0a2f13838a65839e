// The command line of hvdrun. All options stand in one table (options_table.h); this is what
// parsing makes of it. argv and environment go in, Options or an error (exit 2) comes out; of the
// outside world only the files that are named are looked at. Thread: one, getopt keeps global
// state.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "launcher/hostlist.h"
#include "launcher/report_options.h"
#include "launcher/restart_request.h"
#include "launcher/signal_options.h"
#include "launcher/timeline_options.h"
#include "launcher/watch_options.h"
#include "proto/worker_env.h"

namespace hvd {

enum class TransportKind { kAuto, kLocal, kCommand, kSsh };
enum class FabricMode { kRequire, kWarn, kSkip };
enum class Action { kRun, kHelp, kVersion, kCheckBuild, kDryRun, kManPage, kBashCompletion };

struct Options {
  Action action = Action::kRun;
  std::vector<HostSpec> hosts;      // "localhost:np" if none was given
  std::string hosts_source;         // "-H node1:2,node2:2", "--hostfile FILE": for messages
  std::optional<std::uint32_t> np;  // nullopt: all slots
  std::vector<std::string> notes;   // told at the start, e.g. zero slots
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(120);
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<std::chrono::nanoseconds> exit_timeout;
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  std::chrono::nanoseconds lease = std::chrono::seconds(15);
  // 1 s, or a third of a shorter lease, unless the hidden option for tests says otherwise.
  std::chrono::nanoseconds heartbeat = std::chrono::seconds(1);
  // -x NAME[=VALUE], in order. A NAME alone has got the launcher's value; names unset there are
  // left out and noted.
  EnvList env;
  std::uint16_t ssh_port = 0;
  std::string ssh_identity_file;
  std::string ssh_config;
  bool accept_new_host_keys = false;
  TransportKind transport = TransportKind::kAuto;
  bool is_transport_given = false;
  std::vector<std::string> rsh;  // words of --rsh
  std::uint16_t master_port_low = 61000;
  std::uint16_t master_port_high = 65535;
  std::string master_addr;
  std::vector<std::string> network_interfaces;  // names, and subnets as a.b.c.d/n
  FabricMode fabric = FabricMode::kRequire;
  TimelineRequest timeline;
  WatchRequest watch;
  SignalRequest signals;
  RecordRequest records;
  RestartRequest restarts;
  int verbosity = 0;  // -v 1, -vv 2
  std::vector<std::string> command;
};

// `environment` gives defaults (HVDRUN_START_TIMEOUT, HOROVOD_START_TIMEOUT) and the values of
// -x NAME. argv[0] is skipped. Reads the hostfile that is named. Help, version and the other
// printing actions win over every error in the rest.
[[nodiscard]] Result<Options> parse_options(const std::vector<std::string>& argv,
                                            const EnvList& environment);

// With the process's own environment.
[[nodiscard]] Result<Options> parse_options(const std::vector<std::string>& argv);

[[nodiscard]] std::string version_text();  // "hvdrun 0.1.0\n"
[[nodiscard]] std::string help_text(int columns);
[[nodiscard]] std::string man_page();  // roff of hvdrun(1)
[[nodiscard]] std::string bash_completion();

// The transport of one host under --transport: judged by the name as written, never by resolving.
[[nodiscard]] TransportKind transport_for(const Options& options, const HostSpec& host);
[[nodiscard]] const char* transport_name(TransportKind kind);  // "ssh"

}  // namespace hvd
