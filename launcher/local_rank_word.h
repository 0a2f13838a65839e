// Where --local-rank=N stands in a command for scripts that find their local rank nowhere else.
// Pure.
//
// Behind the script, as torch.distributed.launch does it: the script of the first python in the
// command, or what -m or -c take; without a python the first word that ends in .py; without one the
// end of the command.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hvd {

// The number of words before it: 1 to command.size(). `command` is not empty.
[[nodiscard]] std::size_t local_rank_place(const std::vector<std::string>& command);

}  // namespace hvd
