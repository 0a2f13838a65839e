// hvdrun --check-build: what this build can do, in the form known from horovodrun. Pure; what is
// there is found by build_parts.h.
#pragma once

#include <string>

namespace hvd {

// Filled by the program from what was really built; local and command are always there.
struct BuildInfo {
  std::string version;
  bool has_ssh = false;      // the ssh transport
  bool has_trainer = false;  // the PETRv2 trainer, which needs libtorch
  bool has_nccl = false;     // collectives of the runtime on GPUs
  bool has_tcp = false;      // collectives of the runtime on TCP
};

[[nodiscard]] std::string check_build_text(const BuildInfo& build);

}  // namespace hvd
