// How a job runs and ends: times, signals, hangs, restarts.
#include "launcher/options_table_parts.h"

namespace hvd {

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
       .help =
           "Before the job is stopped because it hangs or --timeout has passed, run this for "
           "each process on its node and show what it prints (behind the process's own words, too, "
           "in the files of --output-filename), as in 'py-spy dump --pid "
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

}  // namespace hvd
