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
#include "launcher/argv_scan.h"
#include "launcher/env_options.h"
#include "launcher/hostlist.h"
#include "launcher/output_options.h"
#include "launcher/rank_order.h"
#include "launcher/report_options.h"
#include "launcher/restart_request.h"
#include "launcher/settings.h"
#include "launcher/signal_options.h"
#include "launcher/timeline_options.h"
#include "launcher/watch_options.h"
#include "proto/worker_env.h"

namespace hvd {

enum class TransportKind { kAuto, kLocal, kCommand, kSsh, kTls };  // as --transport lists them
enum class FabricMode { kRequire, kWarn, kSkip };
enum class Action {
  kRun,
  kHelp,
  kVersion,
  kCheckBuild,
  kDryRun,
  kShowConfig,
  kManPage,
  kBashCompletion,
  kZshCompletion,
  kFishCompletion,
};

struct Options {
  Action action = Action::kRun;
  std::vector<HostSpec> hosts;      // of an allocation or "localhost:np" if none was given
  std::string hosts_source;         // "-H node1:2,node2:2", "--hostfile FILE": for messages
  std::optional<std::uint32_t> np;  // nullopt: all slots
  RankOrder rank_order = RankOrder::kBlock;
  bool is_one_gpu_per_rank = false;
  std::vector<std::string> notes;  // told at the start, e.g. zero slots
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(120);
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<std::chrono::nanoseconds> exit_timeout;
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  std::chrono::nanoseconds lease = std::chrono::seconds(15);
  // 1 s, or a third of a shorter lease, unless the hidden option for tests says otherwise.
  std::chrono::nanoseconds heartbeat = std::chrono::seconds(1);
  EnvRequest env_request;
  // What the user gives to every process: --env-file, over it -x NAME[=VALUE], in order. A NAME
  // alone has got the launcher's value; names unset there are left out and noted. Before them what
  // tuning options set (horovod_options.h).
  EnvList env;
  std::uint16_t ssh_port = 0;
  std::string ssh_identity_file;
  std::string ssh_config;
  bool accept_new_host_keys = false;
  std::vector<std::string> stage;  // --stage, as written
  TransportKind transport = TransportKind::kAuto;
  bool is_transport_given = false;
  std::vector<std::string> rsh;   // words of --rsh
  bool is_agent_running = false;  // behind the program of --rsh
  std::string tls_dir;            // empty: none was found
  std::uint16_t tls_port = 50451;
  std::uint16_t master_port_low = 61000;
  std::uint16_t master_port_high = 65535;
  std::string master_addr;
  std::vector<std::string> network_interfaces;  // names, and subnets as a.b.c.d/n
  FabricMode fabric = FabricMode::kRequire;
  TimelineRequest timeline;
  WatchRequest watch;
  SignalRequest signals;
  RecordRequest records;
  OutputRequest output;
  RestartRequest restarts;
  int verbosity = 0;  // -v 1, -vv 2
  std::vector<std::string> command;
  std::vector<Occurrence> settings;  // all options that are set, with where; the last one counts
};

// `environment` and the configuration files give defaults (settings.h), and the values of -x NAME.
// argv[0] is skipped. Reads the files that are named. Help, version and the other printing actions
// win over every error in the rest.
[[nodiscard]] Result<Options> parse_options(const std::vector<std::string>& argv,
                                            const EnvList& environment,
                                            const ConfigPlaces& places = {});

// With the process's own environment, and its files.
[[nodiscard]] Result<Options> parse_options(const std::vector<std::string>& argv);

[[nodiscard]] std::string version_text();  // "hvdrun 0.1.0\n"
[[nodiscard]] std::string help_text(int columns);
[[nodiscard]] std::string man_page();  // roff of hvdrun(1)
[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

// The transport of one host under --transport: judged by the name as written, never by resolving.
[[nodiscard]] TransportKind transport_for(const Options& options, const HostSpec& host);
[[nodiscard]] const char* transport_name(TransportKind kind);  // "ssh"

}  // namespace hvd
