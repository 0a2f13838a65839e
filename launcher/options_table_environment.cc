// What the ranks are given.
#include "launcher/options_table_parts.h"

namespace hvd {

std::vector<OptionSpec> environment_options() {
  return {
      {.id = OptionId::kEnv,
       .group = OptionGroup::kEnvironment,
       .names = {"-x"},
       .argument = "NAME[=VALUE]",
       .help = "Give all processes this variable, taken literally; without a value hvdrun's own, "
               "and NAME may be a pattern then, as in -x 'AWS_*'. May be repeated",
       .repeat = Repeat::kEach},
      {.id = OptionId::kEnvFile,
       .group = OptionGroup::kEnvironment,
       .names = {"--env-file"},
       .argument = "FILE",
       .help = "Give all processes the variables of FILE, one NAME=VALUE a line, where # begins a "
               "comment, 'single' and \"double\" quotes hold blanks and line ends and nothing is "
               "expanded; NAME alone is hvdrun's own. May be repeated; -x wins over it",
       .repeat = Repeat::kEach,
       .is_file = true},
      {.id = OptionId::kEnvAllow,
       .group = OptionGroup::kEnvironment,
       .names = {"--env-allow"},
       .argument = "PATTERN",
       .help = "Let variables of hvdrun's environment whose names match PATTERN (*, ? and [...]) "
               "go to the processes, though they would stay at home. May be repeated, or a list "
               "with commas",
       .repeat = Repeat::kEach},
      {.id = OptionId::kEnvDeny,
       .group = OptionGroup::kEnvironment,
       .names = {"--env-deny"},
       .argument = "PATTERN",
       .help = "Keep variables of hvdrun's environment whose names match PATTERN at home. Of "
               "--env-allow and --env-deny the last one that matches a name decides, as in "
               "--env-deny '*' --env-allow 'NCCL_*'; -x and --env-file are not asked. May be "
               "repeated, or a list with commas",
       .repeat = Repeat::kEach},
      {.id = OptionId::kTorchelastic,
       .group = OptionGroup::kEnvironment,
       .names = {"--torchelastic"},
       .argument = "",
       .help = "Set TORCHELASTIC_RUN_ID and TORCHELASTIC_USE_AGENT_STORE as well, by which some "
               "programs tell that torchrun has started them",
       .opposite = "--no-torchelastic"},
      {.id = OptionId::kLocalRankArg,
       .group = OptionGroup::kEnvironment,
       .names = {"--local-rank-arg"},
       .argument = "NAME",
       .help = "Give each process its local rank as --NAME=N, too, behind the script in COMMAND "
               "(without a script at its end), for scripts made for torch.distributed.launch; "
               "default: local-rank, for older ones write --local-rank-arg=local_rank",
       .is_argument_optional = true},
      {.id = OptionId::kBind,
       .group = OptionGroup::kEnvironment,
       .names = {"--bind"},
       .argument = "MODE",
       .help = "Bind each process to CPUs, and its memory, near its GPU (without one the processes "
               "are spread over the NUMA nodes): numa, all CPUs of the NUMA node; core, the NUMA "
               "node's cores shared out among its processes; or none; default: none",
       .choices = {"none", "numa", "core"}},
      {.id = OptionId::kReportBindings,
       .group = OptionGroup::kEnvironment,
       .names = {"--report-bindings"},
       .argument = "",
       .help = "Print the CPUs of each process",
       .opposite = "--no-report-bindings"},
      {.id = OptionId::kCoreDumps,
       .group = OptionGroup::kEnvironment,
       .names = {"--core-dumps"},
       .argument = "WHO",
       .help = "Which processes may leave a core, as far as hvdrun's own limit allows one (ulimit "
               "-c): all; rank0, so that a crash of the whole job leaves one core and not one a "
               "GPU; or none; default: all",
       .choices = {"all", "rank0", "none"}},
      {.id = OptionId::kNoPmi,
       .group = OptionGroup::kEnvironment,
       .names = {"--no-pmi"},
       .argument = "",
       .help = "Do not answer PMI-1: without it programs built with MPICH, mpi4py among them, find "
               "each other by PMI_FD (descriptor 3), PMI_RANK and PMI_SIZE, as under mpirun",
       .opposite = "--pmi"},
  };
}

}  // namespace hvd
