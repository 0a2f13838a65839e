// `petrv2 train`: from the command line to a running Trainer, and from how it ended to an exit
// code. Thread: main's, once.
#pragma once

#include <string>
#include <vector>

namespace hvd::petrv2 {

// `words`: the options, without the subcommand. Exit codes: 0; 2 for a wrong option or
// configuration; 70-75 and 143 as of every worker of hvdrun (runtime/worker_exit.h).
[[nodiscard]] int run_train(const std::vector<std::string>& words);

}  // namespace hvd::petrv2
