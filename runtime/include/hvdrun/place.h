// Where one process stands among the ranks of its job.
#pragma once

#include <string>

namespace hvd {

// Local: among the ranks on the same machine. Cross: among the ranks with the same local rank.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  std::string host;      // as the user calls it, else as it calls itself
  std::string launcher;  // "hvdrun", "torchrun", "mpirun", "srun"; empty: started alone
};

}  // namespace hvd
