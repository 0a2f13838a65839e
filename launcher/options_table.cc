#include "launcher/options_table.h"

#include <fmt/format.h>

namespace hvd {
namespace {

std::vector<OptionSpec> host_options() {
  return {
      {.id = OptionId::kNumProc,
       .group = OptionGroup::kHosts,
       .names = {"-np", "--num-proc"},
       .argument = "N",
       .help = "Start exactly N processes, filling the hosts in order; default: one for each slot"},
      {.id = OptionId::kHosts,
       .group = OptionGroup::kHosts,
       .names = {"-H", "--hosts"},
       .argument = "LIST",
       .help = "Hosts as [USER@]HOST[:SLOTS],...; a host without slots has as many as GPUs, 1 "
               "without a GPU; default: localhost:N"},
      {.id = OptionId::kHostfile,
       .group = OptionGroup::kHosts,
       .names = {"--hostfile"},
       .argument = "FILE",
       .help = "Hosts from FILE, one a line: HOST [slots=N] [port=N]; '#' starts a comment",
       .is_file = true},
  };
}

std::vector<OptionSpec> time_options() {
  return {
      {.id = OptionId::kStartTimeout,
       .group = OptionGroup::kTime,
       .names = {"--start-timeout"},
       .argument = "TIME",
       .help = "Give up (exit 124) if not all processes have started after TIME; default: 120s",
       .variables = {"HVDRUN_START_TIMEOUT", "HOROVOD_START_TIMEOUT"}},
      {.id = OptionId::kTimeout,
       .group = OptionGroup::kTime,
       .names = {"--timeout"},
       .argument = "TIME",
       .help = "Stop the job (exit 124) after TIME; default: no limit"},
      {.id = OptionId::kExitTimeout,
       .group = OptionGroup::kTime,
       .names = {"--exit-timeout"},
       .argument = "TIME",
       .help = "Stop the job (exit 125) if processes still run TIME after the first one ended "
               "with 0; default: off"},
      {.id = OptionId::kGrace,
       .group = OptionGroup::kTime,
       .names = {"--grace"},
       .argument = "TIME",
       .help = "When stopping, SIGKILL what is left TIME after the first signal (see "
               "--stop-signal), 0 to 1h; default: 10s"},
      {.id = OptionId::kLease,
       .group = OptionGroup::kTime,
       .names = {"--lease"},
       .argument = "TIME",
       .help = "A node that has not heard from hvdrun for TIME stops its processes, and hvdrun "
               "gives up such a node, 1s to 1h; default: 15s"},
      {.id = OptionId::kHeartbeatMs,
       .group = OptionGroup::kTime,
       .names = {"--heartbeat-ms"},
       .argument = "N",
       .help = "Milliseconds between heartbeats",
       .is_hidden = true},
  };
}

std::vector<OptionSpec> signal_options() {
  return {
      {.id = OptionId::kStopSignal,
       .group = OptionGroup::kSignals,
       .names = {"--stop-signal"},
       .argument = "SIG",
       .help = "When stopping, send SIG first and SIGKILL after --grace; a name or a number; "
               "default: TERM"},
      {.id = OptionId::kTimeoutSignal,
       .group = OptionGroup::kSignals,
       .names = {"--timeout-signal"},
       .argument = "SIG@TIME",
       .help = "Send SIG to all processes TIME before --timeout has passed, as in USR1@60"},
      {.id = OptionId::kForwardSignals,
       .group = OptionGroup::kSignals,
       .names = {"--forward-signals"},
       .argument = "LIST",
       .help = "Pass these signals from hvdrun on to all processes, or none; default: USR1,USR2"},
      {.id = OptionId::kStdin,
       .group = OptionGroup::kSignals,
       .names = {"--stdin"},
       .argument = "",
       .help = "Give hvdrun's standard input to rank 0; without it, and for all other ranks, it is "
               "empty",
       .opposite = "--no-stdin"},
  };
}

std::vector<OptionSpec> hang_options() {
  return {
      {.id = OptionId::kStallTimeout,
       .group = OptionGroup::kHangs,
       .names = {"--stall-timeout"},
       .argument = "TIME",
       .help = "Stop the job (exit 124) if a process that runs gives no sign of life for TIME: no "
               "output, no CPU time of it and its children (less than a thousandth of a "
               "processor is none) and, if it uses hvdrun's runtime, no progress; default: off"},
      {.id = OptionId::kOnStall,
       .group = OptionGroup::kHangs,
       .names = {"--on-stall"},
       .argument = "WORDS",
       .help = "Before the job is stopped because it hangs or --timeout has passed, run this for "
               "each process on its node and show what it prints, as in 'py-spy dump --pid "
               "{pid}'; {pid}, {rank} and {host} are replaced, no shell is involved, 5s each; "
               "without it the kernel's stacks of processes that hang are shown"},
      {.id = OptionId::kOnStallLimit,
       .group = OptionGroup::kHangs,
       .names = {"--on-stall-limit"},
       .argument = "TIME",
       .help = "How long the command of --on-stall may run for each process",
       .is_hidden = true},
      {.id = OptionId::kGpuStats,
       .group = OptionGroup::kHangs,
       .names = {"--gpu-stats"},
       .argument = "TIME",
       .help = "Ask nvidia-smi on each node every TIME for the use of GPUs and their memory, and "
               "tell lowest and mean; default: off"},
  };
}

std::vector<OptionSpec> restart_options() {
  return {
      {.id = OptionId::kMaxRestarts,
       .group = OptionGroup::kRestarts,
       .names = {"--max-restarts"},
       .argument = "N",
       .help = "After the failure of a process or node run the whole job again, up to N times; a "
               "host that failed twice is left out if the others, or a --spare, have the slots. "
               "TORCHELASTIC_RESTART_COUNT tells the processes which attempt it is; default: 0"},
      {.id = OptionId::kSpare,
       .group = OptionGroup::kRestarts,
       .names = {"--spare"},
       .argument = "LIST",
       .help = "Hosts, written as for -H, that take the place of hosts that failed; without slots "
               "they have as many as the host that they replace"},
  };
}

std::vector<OptionSpec> environment_options() {
  return {
      {.id = OptionId::kEnv,
       .group = OptionGroup::kEnvironment,
       .names = {"-x"},
       .argument = "NAME[=VALUE]",
       .help = "Give all processes this variable, taken literally; without a value hvdrun's own. "
               "May be repeated",
       .repeat = Repeat::kEach},
  };
}

std::vector<OptionSpec> node_options() {
  return {
      {.id = OptionId::kTransport,
       .group = OptionGroup::kNodes,
       .names = {"--transport"},
       .argument = "KIND",
       .help = "How nodes are reached: auto (localhost local, all others ssh), local, command (see "
               "--rsh) or ssh; a KIND given here holds for all hosts",
       .choices = {"auto", "local", "command", "ssh"}},
      {.id = OptionId::kRsh,
       .group = OptionGroup::kNodes,
       .names = {"--rsh"},
       .argument = "WORDS",
       .help = "The program of --transport command, whose stdin and stdout reach the node, as in "
               "'kubectl exec -i {host} --'; {host}, {user} and {port} are replaced, no shell "
               "is involved"},
      {.id = OptionId::kSshPort,
       .group = OptionGroup::kNodes,
       .names = {"-p", "--ssh-port"},
       .argument = "N",
       .help = "Port of sshd on the nodes; default: as ssh's configuration says"},
      {.id = OptionId::kSshIdentityFile,
       .group = OptionGroup::kNodes,
       .names = {"-i", "--ssh-identity-file"},
       .argument = "FILE",
       .help = "Private key for ssh; default: agent and files as ssh's configuration says",
       .is_file = true},
      {.id = OptionId::kSshConfig,
       .group = OptionGroup::kNodes,
       .names = {"--ssh-config"},
       .argument = "FILE",
       .help = "Read this ssh configuration instead of the user's and the system's",
       .is_file = true},
      {.id = OptionId::kAcceptNewHostKeys,
       .group = OptionGroup::kNodes,
       .names = {"--accept-new-host-keys"},
       .argument = "",
       .help =
           "Trust and remember the key of a host that is seen for the first time; a changed key "
           "is always refused",
       .opposite = "--no-accept-new-host-keys"},
  };
}

std::vector<OptionSpec> network_options() {
  return {
      {.id = OptionId::kMasterPort,
       .group = OptionGroup::kNetwork,
       .names = {"--master-port"},
       .argument = "N|LO-HI",
       .help = "MASTER_PORT, reserved on the first node for the whole job; default: a free one of "
               "61000-65535"},
      {.id = OptionId::kMasterAddr,
       .group = OptionGroup::kNetwork,
       .names = {"--master-addr"},
       .argument = "ADDRESS",
       .help = "MASTER_ADDR; default: the first address of the first node that all nodes reach"},
      {.id = OptionId::kNetworkInterfaces,
       .group = OptionGroup::kNetwork,
       .names = {"--network-interfaces"},
       .argument = "LIST",
       .help = "Use only these interfaces between nodes, by name or subnet, as in "
               "eth0,10.1.0.0/16",
       .repeat = Repeat::kEach},
      {.id = OptionId::kFabric,
       .group = OptionGroup::kNetwork,
       .names = {"--fabric"},
       .argument = "MODE",
       .help = "The check that all nodes reach the first one: require (exit 125 if not), warn or "
               "skip; default: require",
       .choices = {"require", "warn", "skip"}},
  };
}

std::vector<OptionSpec> timeline_options() {
  return {
      {.id = OptionId::kTimelineFilename,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-filename"},
       .argument = "FILE",
       .help = "What every rank did when, as one Chrome trace that Perfetto opens, in FILE on this "
               "machine when the job has ended; for programs that use hvdrun's runtime",
       .variables = {"HVDRUN_TIMELINE_FILENAME", "HOROVOD_TIMELINE"},
       .is_file = true},
      {.id = OptionId::kTimelineSteps,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-steps"},
       .argument = "A-B",
       .help = "Only the steps A to B; default: all"},
      {.id = OptionId::kTimelineMaxMb,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-max-mb"},
       .argument = "N",
       .help = "Stop the timeline of a rank at N MiB; default: 256"},
      {.id = OptionId::kTimelineMarkCycles,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-mark-cycles"},
       .argument = "",
       .help = "Mark the start of each step in the timeline",
       .opposite = "--no-timeline-mark-cycles",
       .variables = {"HOROVOD_TIMELINE_MARK_CYCLES"}},
  };
}

std::vector<OptionSpec> record_options() {
  return {
      {.id = OptionId::kReport,
       .group = OptionGroup::kRecords,
       .names = {"--report"},
       .argument = "FILE",
       .help = "At the end write what became of the job, its ranks and nodes to FILE as JSON; - is "
               "the standard output",
       .is_file = true},
      {.id = OptionId::kEvents,
       .group = OptionGroup::kRecords,
       .names = {"--events"},
       .argument = "FILE",
       .help =
           "Write what happens to FILE as it happens, one JSON object a line; - is the standard "
           "output",
       .is_file = true},
  };
}

std::vector<OptionSpec> information_options() {
  return {
      {.id = OptionId::kVerbose,
       .group = OptionGroup::kInformation,
       .names = {"-v", "--verbose"},
       .argument = "",
       .help = "Tell what happens; -vv tells more",
       .repeat = Repeat::kEach},
      {.id = OptionId::kDryRun,
       .group = OptionGroup::kInformation,
       .names = {"--dry-run"},
       .argument = "",
       .help = "Print which ranks would run where, contact nothing, start nothing"},
      {.id = OptionId::kCheckBuild,
       .group = OptionGroup::kInformation,
       .names = {"-cb", "--check-build"},
       .argument = "",
       .help = "Print what this build of hvdrun can do"},
      {.id = OptionId::kVersion,
       .group = OptionGroup::kInformation,
       .names = {"-V", "--version"},
       .argument = "",
       .help = "Print the version"},
      {.id = OptionId::kHelp,
       .group = OptionGroup::kInformation,
       .names = {"-h", "--help"},
       .argument = "",
       .help = "Print this help"},
      {.id = OptionId::kMan,
       .group = OptionGroup::kInformation,
       .names = {"--man"},
       .argument = "",
       .help = "Print the manual page in roff",
       .is_hidden = true},
      {.id = OptionId::kCompletion,
       .group = OptionGroup::kInformation,
       .names = {"--completion"},
       .argument = "SHELL",
       .help = "Print the completion for bash",
       .choices = {"bash"},
       .is_hidden = true},
  };
}

std::vector<OptionSpec> build_table() {
  std::vector<OptionSpec> table;
  for (auto* rows : {host_options, time_options, signal_options, hang_options, restart_options,
                     environment_options, node_options, network_options, timeline_options,
                     record_options, information_options}) {
    for (OptionSpec& row : rows()) table.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string_view group_title(OptionGroup group) {
  switch (group) {
    case OptionGroup::kHosts:
      return "Hosts and ranks";
    case OptionGroup::kTime:
      return "Time limits";
    case OptionGroup::kSignals:
      return "Signals and standard input";
    case OptionGroup::kHangs:
      return "Processes that hang, and GPUs";
    case OptionGroup::kRestarts:
      return "Restarts";
    case OptionGroup::kEnvironment:
      return "Environment of the processes";
    case OptionGroup::kNodes:
      return "Reaching the nodes";
    case OptionGroup::kNetwork:
      return "Network between the ranks";
    case OptionGroup::kTimeline:
      return "Timeline";
    case OptionGroup::kRecords:
      return "Records of the run";
    case OptionGroup::kInformation:
      return "Information";
  }
  return "";
}

const std::vector<OptionSpec>& options_table() {
  static const std::vector<OptionSpec> table = build_table();
  return table;
}

bool is_short_name(std::string_view name) { return name.size() == 2 && name[1] != '-'; }

std::string_view bare_name(std::string_view name) {
  name.remove_prefix(name.substr(0, 2) == "--" ? 2 : 1);
  return name;
}

std::string option_heading(const OptionSpec& option) {
  std::string result;
  for (const auto name : option.names) {
    if (!result.empty()) result += ", ";
    result += name;
    if (option.takes_argument()) result += fmt::format(" {}", option.argument);
  }
  return result;
}

std::string option_description(const OptionSpec& option) {
  if (option.variables.empty()) return std::string(option.help);
  return fmt::format("{} [env: {}]", option.help, fmt::join(option.variables, ", "));
}

}  // namespace hvd
