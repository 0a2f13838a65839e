// The command line of hvdrun. All options stand in one table (options_table.h); this is what parsing
// makes of it. Pure: argv and environment go in, Options or an error (exit 2) comes out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "launcher/hostlist.h"

namespace hvd {

enum class TransportKind { kAuto, kLocal, kCommand, kSsh };
enum class FabricMode { kRequire, kWarn, kSkip };
enum class Action { kRun, kHelp, kVersion, kCheckBuild, kDryRun };

struct Options {
  Action action = Action::kRun;
  std::vector<HostSpec> hosts;             // "localhost:np" if none was given
  std::optional<std::uint32_t> np;         // nullopt: all slots
  std::vector<std::string> notes;          // told at the start, e.g. zero slots
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(120);
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<std::chrono::nanoseconds> exit_timeout;
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  std::chrono::nanoseconds lease = std::chrono::seconds(15);
  std::chrono::nanoseconds heartbeat = std::chrono::seconds(1);  // hidden option, for tests
  std::vector<std::pair<std::string, std::optional<std::string>>> env;  // -x NAME[=VALUE], in order
  std::uint16_t ssh_port = 0;
  std::string ssh_identity_file;
  std::string ssh_config;
  bool accept_new_host_keys = false;
  TransportKind transport = TransportKind::kAuto;
  bool is_transport_given = false;
  std::vector<std::string> rsh;            // words of --rsh
  std::uint16_t master_port_low = 61000;
  std::uint16_t master_port_high = 65535;
  std::string master_addr;
  std::vector<std::string> network_interfaces;
  FabricMode fabric = FabricMode::kRequire;
  int verbosity = 0;                       // -v 1, -vv 2
  std::vector<std::string> command;
};

// `environment` gives defaults (HVDRUN_START_TIMEOUT, HOROVOD_START_TIMEOUT). argv[0] is skipped.
// Reads the hostfile that is named. Help and version win over every error in the rest.
[[nodiscard]] Result<Options> parse_options(const std::vector<std::string>& argv);

[[nodiscard]] std::string help_text(int columns);
[[nodiscard]] std::string man_page();         // roff of hvdrun(1)
[[nodiscard]] std::string bash_completion();

// The transport of one host under --transport: judged by the name as written, never by resolving.
[[nodiscard]] TransportKind transport_for(const Options& options, const HostSpec& host);

}  // namespace hvd
