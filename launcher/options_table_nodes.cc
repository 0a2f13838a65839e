// Which hosts, how they are reached and by which addresses they reach each other.
#include "launcher/options_table_parts.h"

namespace hvd {

std::vector<OptionSpec> host_options() {
  return {
      {.id = OptionId::kNumProc,
       .group = OptionGroup::kHosts,
       .names = {"-np", "-n", "--num-proc"},
       .argument = "N",
       .help = "Start exactly N processes, filling the hosts in order; default: one for each slot"},
      {.id = OptionId::kHosts,
       .group = OptionGroup::kHosts,
       .names = {"-H", "--hosts"},
       .argument = "LIST",
       .help =
           "Hosts as [USER@]HOST[:SLOTS][:port=N][:gpus=LIST],... with ranges as in "
           "node[1-4,7]; a host without slots has as many as GPUs, 1 without a GPU. A number "
           "alone between commas is a GPU of the host before it: node1:0,2,4 are GPUs 0, 2 and "
           "4, and node1:4 is 4 slots. A host named again, as written, adds its slots; default: "
           "the hosts of the allocation of Slurm, LSF, PBS, SGE, mpi-operator or Volcano that "
           "hvdrun runs in, else localhost:N"},
      {.id = OptionId::kHostfile,
       .group = OptionGroup::kHosts,
       .names = {"--hostfile"},
       .argument = "FILE",
       .help = "Hosts from FILE, one a line: HOST [slots=N] [max_slots=N] [user=NAME] [port=N] "
               "[key=FILE] [gpus=LIST] [env.NAME=VALUE]...; HOST as for -H; '#' starts a comment",
       .is_file = true},
      {.id = OptionId::kInclude,
       .group = OptionGroup::kHosts,
       .names = {"--include"},
       .argument = "LIST",
       .help = "Use only these hosts of those given, by name, range or with '*' and '?', or only "
               "some GPUs of them, as in 'node[1-3],node7:0,2'"},
      {.id = OptionId::kExclude,
       .group = OptionGroup::kHosts,
       .names = {"--exclude"},
       .argument = "LIST",
       .help = "Leave out these hosts, or these GPUs of them, written as for --include"},
      {.id = OptionId::kRankOrder,
       .group = OptionGroup::kHosts,
       .names = {"--rank-order"},
       .argument = "ORDER",
       .help = "block: the ranks of a host follow one another, hosts in the order given; cyclic: "
               "one rank for each host in turn; default: block",
       .choices = {"block", "cyclic"}},
      {.id = OptionId::kOneGpuPerRank,
       .group = OptionGroup::kHosts,
       .names = {"--virtual-local-rank", "--one-gpu-per-rank"},
       .argument = "",
       .help = "Each process sees one GPU, in the order of local ranks, and LOCAL_RANK is 0; "
               "without it all processes of a host see all its GPUs, and LOCAL_RANK tells them "
               "apart",
       .opposite = "--no-one-gpu-per-rank"},
  };
}

std::vector<OptionSpec> node_options() {
  return {
      {.id = OptionId::kTransport,
       .group = OptionGroup::kNodes,
       .names = {"--transport"},
       .argument = "KIND",
       .help = "How nodes are reached: auto (localhost local, all others ssh), local, command (see "
               "--rsh), ssh, or tls, an agent that serves there (hvd-agent serve); a KIND given "
               "here holds for all hosts",
       .choices = {"auto", "local", "command", "ssh", "tls"}},
      {.id = OptionId::kRsh,
       .group = OptionGroup::kNodes,
       .names = {"--rsh"},
       .argument = "WORDS",
       .help = "The program of --transport command, whose stdin and stdout reach the node, as in "
               "'kubectl exec -i {host} --'; {host}, {user} and {port} are replaced, no shell "
               "is involved"},
      {.id = OptionId::kTlsPort,
       .group = OptionGroup::kNodes,
       .names = {"--tls-port"},
       .argument = "PORT",
       .help = "TCP port of the agents of --transport tls; default: 50451"},
      {.id = OptionId::kTlsDir,
       .group = OptionGroup::kNodes,
       .names = {"--tls-dir"},
       .argument = "FOLDER",
       .help = "Where client.key, client.crt and ca.crt for --transport tls are (hvdctl ca issue "
               "makes them); default: ~/.config/hvdrun/tls",
       .is_file = true},
      {.id = OptionId::kAgentRunning,
       .group = OptionGroup::kNodes,
       .names = {"--agent-running"},
       .argument = "",
       .help = "The program of --rsh reaches an agent that runs already (hvd-agent serve), as in "
               "'socat - UNIX-CONNECT:PATH': it is given no command, and nothing is placed there",
       .opposite = "--no-agent-running"},
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
      {.id = OptionId::kStage,
       .group = OptionGroup::kNodes,
       .names = {"--stage"},
       .argument = "PATH",
       .help =
           "Send this file, or folder with all that is in it, to every node, where the processes "
           "start in a new folder that goes with the job. What is in the working directory "
           "keeps its place there, as in --stage . python train.py; all else stands under its "
           "last name. A node keeps what it got, and is sent only what is new. May be repeated",
       .repeat = Repeat::kEach,
       .is_file = true},
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
       .names = {"--network-interfaces", "--network-interface"},
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

}  // namespace hvd
