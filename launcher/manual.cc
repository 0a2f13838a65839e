#include "launcher/manual.h"

namespace hvd {

const std::vector<std::string_view>& manual_description() {
  static const std::vector<std::string_view> paragraphs = {
      "hvdrun starts COMMAND once for each rank on the hosts of the job, tells every process its "
      "rank and how to find the others, shows their output line by line, and stops all of them "
      "when "
      "one fails, when the user interrupts, or when a node or hvdrun itself is lost. COMMAND may "
      "be "
      "any program: one that uses torch.distributed with env://, Horovod with Gloo, or neither.",
      "COMMAND is everything from the first word that is no option; options behind it belong to it "
      "and reach it byte for byte, without a shell. A -- before COMMAND is dropped. Long options "
      "take one dash or two and may be shortened while they stay unique. Of an option given twice "
      "the last one counts.",
      "Ranks fill the hosts in the order given, local ranks 0, 1, ... on each. A host listed again "
      "adds its slots where it first stood.",
      "Processes run in the directory that hvdrun was started in, which every node must have, with "
      "no standard input unless --stdin gives rank 0 that of hvdrun. In a host file a line is "
      "HOST, HOST:SLOTS or HOST slots=SLOTS, HOST also as USER@HOST; # begins a comment.",
      "Ctrl-C, SIGTERM and SIGHUP stop the job: all processes get --stop-signal first, and "
      "SIGKILL after --grace; a second Ctrl-C kills at once. What was ignored when hvdrun was "
      "started, as by nohup, stays ignored. Ctrl-Z is refused: the nodes would take an hvdrun that "
      "is stopped for a lost one.",
      "A TIME is a number of seconds, or a number with s, m or h, as in 90, 1.5m or 2h.",
  };
  return paragraphs;
}

const std::vector<ManualRow>& manual_exit_status() {
  static const std::vector<ManualRow> rows = {
      {"0", "all processes ended with 0"},
      {"n", "the code of the process that failed first"},
      {"128+s", "signal s ended the process that failed first"},
      {"124", "--timeout, --start-timeout or --stall-timeout passed"},
      {"125", "a node, its connection or the rendezvous failed; --exit-timeout passed"},
      {"2", "usage, host list or more ranks than slots; nothing was started"},
      {"126, 127", "COMMAND cannot be executed, or is not found on a node"},
      {"129-131, 143", "hvdrun was ended by SIGHUP, SIGINT, SIGQUIT or SIGTERM"},
      {"141", "the reader of hvdrun's output has gone"},
  };
  return rows;
}

const std::vector<ManualRow>& manual_examples() {
  static const std::vector<ManualRow> rows = {
      {"hvdrun -np 4 python train.py", "four ranks on this machine, no ssh involved"},
      {"hvdrun -np 32 -H node1:8,node2:8,node3:8,node4:8 python train.py",
       "eight ranks on each of four nodes, reached by ssh"},
      {"hvdrun --hostfile hosts -x NCCL_DEBUG=INFO --timeout 2h ./train --epochs 3",
       "one rank for each GPU of the hosts in a file, at most two hours"},
      {"hvdrun -H pod-0:8,pod-1:8 --transport command --rsh 'kubectl exec -i {host} --' ./train",
       "containers reached by kubectl instead of ssh"},
  };
  return rows;
}

const std::vector<ManualRow>& manual_files() {
  static const std::vector<ManualRow> rows = {
      {"~/.config/hvdrun/config.yaml",
       "Defaults of options for one user, below $XDG_CONFIG_HOME where that is set. One KEY: VALUE "
       "a "
       "line; KEY is a long option without its dashes, with _ or -, VALUE what the option takes, "
       "true or false for one that takes nothing, a list for one that takes a LIST or is repeated. "
       "x is -x, as a list of NAME=VALUE or as NAME: VALUE below it; it adds to -x of the command "
       "line. The file may also have the sections of horovodrun's: params, autotune, timeline, "
       "stall_check, library_options and logging, and controller. A key that is unknown or stands "
       "twice is an error."},
      {"/etc/hvdrun/config.yaml", "The same for all users of this machine; weaker."},
  };
  return rows;
}

std::string_view manual_of_variables() {
  return "Each of these gives an option's value, 1 or 0 for one that takes none, and is weaker "
         "than "
         "the command line and stronger than --config-file, which is stronger than the FILES "
         "above. "
         "Empty is unset. Where several are listed for an option, the first that is set counts.";
}

const std::vector<ManualRow>& manual_worker_variables() {
  static const std::vector<ManualRow> rows = {
      {"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_RANK, "
       "ROLE_WORLD_SIZE, ROLE_NAME, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RESTART_COUNT, "
       "TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_ERROR_FILE",
       "as torchrun sets them; TORCHELASTIC_RUN_ID and TORCHELASTIC_USE_AGENT_STORE only with "
       "--torchelastic"},
      {"LOCAL_SIZE, CROSS_RANK, CROSS_SIZE, MASTER_HOST",
       "as DeepSpeed sets them, and torchpack's MASTER_ADDR:MASTER_PORT"},
      {"HOROVOD_RANK, HOROVOD_SIZE, HOROVOD_LOCAL_RANK, HOROVOD_LOCAL_SIZE, HOROVOD_CROSS_RANK, "
       "HOROVOD_CROSS_SIZE, HOROVOD_HOSTNAME",
       "as horovodrun sets them"},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR, HOROVOD_GLOO_RENDEZVOUS_PORT, HOROVOD_CONTROLLER, "
       "HOROVOD_CPU_OPERATIONS",
       "the store by which Horovod's ranks find each other, on the first node, and gloo; not set "
       "where that node has no IPv4 address that all nodes reach"},
      {"HOROVOD_GLOO_IFACE",
       "unless it is set: the interface by which this node reached the others, lo on one machine"},
      {"HVDRUN_JOB_ID, HVDRUN_NODE, HVDRUN_ADDRESS, HVDRUN_RENDEZVOUS",
       "the job, the node's index and numeric address, and the socket of the job's key-value "
       "store"},
      {"HVDRUN_TIMELINE, HVDRUN_TIMELINE_STEPS, HVDRUN_TIMELINE_MAX_BYTES",
       "with --timeline-filename: the folder of the ranks' timelines on this node, and their "
       "bounds"},
      {"HOROVOD_TIMELINE",
       "with --timeline-filename: that file, which rank 0 of a program with Horovod writes where "
       "it "
       "runs"},
      {"PMI_FD, PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS",
       "unless --no-pmi is given: as MPICH's mpirun sets them; descriptor 3 answers PMI-1"},
      {"UCX_NET_DEVICES",
       "with several nodes and PMI, unless set, on a node without RDMA devices: the interface by "
       "which it reached the others"},
      {"PYTHONUNBUFFERED, TORCH_NCCL_ASYNC_ERROR_HANDLING", "1, unless set"},
      {"OMP_NUM_THREADS", "1 where several ranks share the node, unless it is set"},
      {"CUDA_VISIBLE_DEVICES",
       "passed on as it is, hvdrun's or else the node's own; every process of a node sees the same "
       "list, in which LOCAL_RANK counts"},
      {"GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME",
       "with several nodes, unless set: the interface by which this node reached the others"},
  };
  return rows;
}

}  // namespace hvd
