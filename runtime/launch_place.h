// Which rank this process is and how it meets the others, from the variables that its launcher set:
//   hvdrun     RANK, WORLD_SIZE, ..., HVDRUN_RENDEZVOUS: the agent's socket
//   torchrun   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   mpirun     OMPI_COMM_WORLD_* (Open MPI); PMI_RANK, PMI_SIZE, MPI_LOCALRANKID (MPICH and others)
//   srun       SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID
//   alone      none of them
// One launcher may run inside another (mpirun in a batch job): the first of this list counts.
// Without hvdrun, HVDRUN_INIT says where the ranks meet: file:///shared/folder or tcp://host:port.
//
// Pure. Errors are the user's (ExitCode::kUsage): one sentence that names the variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/place.h"
#include "proto/worker_env.h"

namespace hvd {

enum class MeetingWay : std::uint8_t {
  kNone,    // one process
  kAgent,   // the socket of hvdrun's agent
  kFolder,  // one that all ranks share
  kTcp,     // rank 0 listens there
};

struct LaunchPlace {
  Place place;  // local_size, cross_size: 0 where the launcher does not tell (complete_place)
  MeetingWay way = MeetingWay::kNone;
  std::string where;    // path of the socket, folder, or host
  int port = 0;         // kTcp
  std::string address;  // numeric, of this node, by which others reach it; empty: to be found
  std::uint32_t generation = 0;  // how often the launcher has started this job before
  std::string node;   // what tells this node from the others, where the launcher has such a number
  std::string group;  // of the agents of the launcher, of which a machine may have several
  std::string job;    // job_identity.h
};

// host: of this machine, where the launcher has no name for it.
[[nodiscard]] Result<LaunchPlace> launch_place(const EnvList& environment, const std::string& host);

// What every rank knows of itself, in the order of the ranks.
struct Seat {
  std::string node;  // its host, and what makes the text the same on one machine only
  int local_rank = 0;
};
// Two ranks of one node with the same local rank (WorkerExit::kMismatch).
[[nodiscard]] Result<void> check_seats(const std::vector<Seat>& seats);
// Counts what the launcher did not tell.
[[nodiscard]] Place complete_place(Place place, const std::vector<Seat>& seats);

}  // namespace hvd
