#include "launcher/foreign_options.h"

#include <algorithm>
#include <array>
#include <string>

namespace hvd {
namespace {

struct ForeignWord {
  std::string_view stem;  // without dashes, '-' for '_'
  std::string_view hint;
};

constexpr std::string_view kSlots =
    "is another launcher's: the ranks of a host are its slots, as in -np 16 -H node1:8,node2:8";
constexpr std::string_view kNodes =
    "is torchrun's: here one hvdrun starts all nodes, as in -H node1:8,node2:8 "
    "(docs/from-torchrun.md)";
constexpr std::string_view kRendezvous =
    "is torchrun's: here ranks meet without it; leave it out, or see --master-addr and "
    "--master-port";
constexpr std::string_view kMpi = "is mpirun's: see docs/from-mpirun.md for what it is here";

constexpr std::array<ForeignWord, 28> kForeign = {{
    {"nproc-per-node", kSlots},
    {"ppn", kSlots},
    {"npernode", kSlots},
    {"ntasks-per-node", kSlots},
    {"nnodes", kNodes},
    {"node-rank", kNodes},
    {"standalone", kNodes},
    {"rdzv-endpoint", kRendezvous},
    {"rdzv-backend", kRendezvous},
    {"rdzv-id", kRendezvous},
    {"rdzv-conf", kRendezvous},
    {"local-addr", kRendezvous},
    {"log-dir", "is torchrun's: here it is --output-filename DIR"},
    {"redirects", "is torchrun's: here it is --output-filename DIR"},
    {"tee", "is torchrun's: here it is --output-filename DIR"},
    {"monitor-interval", "is torchrun's: here a rank's end is known at once; leave it out"},
    {"no-python", "is torchrun's: any program may stand here; leave it out"},
    {"module", "is torchrun's: write python -m MODULE"},
    {"bind-to", "is mpirun's: here it is --bind numa or --bind core"},
    {"map-by", "is mpirun's: here it is --rank-order block or cyclic"},
    {"rank-by", "is mpirun's: here it is --rank-order block or cyclic"},
    {"host", "is mpirun's: here it is -H or --hosts"},
    {"machinefile", "is mpirun's: here it is --hostfile FILE"},
    {"mca", kMpi},
    {"gmca", kMpi},
    {"allow-run-as-root", "is mpirun's: nothing forbids it here; leave it out"},
    {"wdir", "is mpirun's: ranks start in the directory in which hvdrun was started"},
    {"genv", "is MPICH's: here it is -x NAME=VALUE"},
}};

}  // namespace

std::string_view foreign_option_hint(std::string_view name) {
  std::string stem(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::replace(stem.begin(), stem.end(), '_', '-');
  const auto found = std::find_if(kForeign.begin(), kForeign.end(),
                                  [&](const ForeignWord& foreign) { return foreign.stem == stem; });
  return found == kForeign.end() ? "" : found->hint;
}

}  // namespace hvd
