// Hostfiles as horovodrun, mpirun, DeepSpeed, MPICH and people write them. Pure; errors are exit 2
// and name file, line and token.
#pragma once

#include <string_view>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

// One host, or one range of hosts, a line, in the form of an entry of a host list ("node1",
// "me@node[1-4]:8") with any of these keys after it, each once:
//
//   slots=N max_slots=N          ranks of the host; max_slots must not be below
//   user=NAME username=NAME      as NAME@ in front
//   port=N key=FILE              for ssh
//   gpus=0,2,4-7                 GPUs of its ranks, numbers or ids of nvidia-smi -L
//   env.NAME=VALUE               a variable for its ranks, over -x; may stand for several names
//
// 'single' and "double" quotes keep blanks and '#' in a word; no other character is special. Blanks
// round '=' do not count. '#' begins a comment. Line ends may be LF, CR LF or CR, the last may
// lack, a byte order mark may stand in front. `path` is for messages.
[[nodiscard]] Result<std::vector<HostSpec>> parse_hostfile(std::string_view text,
                                                           std::string_view path,
                                                           std::vector<std::string>* notes);

}  // namespace hvd
