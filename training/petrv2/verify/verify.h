// `petrv2 verify`: is this build right on this device and in this precision? Without options it
// checks the golden numbers; with options it runs any configuration on formula weights and writes
// what came out of every stage.
#pragma once

#include <string>
#include <vector>

namespace hvd::petrv2 {

// arguments: without program and subcommand. Prints on standard output; returns the exit code: 0, 1
// where a golden number is missed or the run fails, 2 for a wrong command line.
int run_verify(const std::vector<std::string>& arguments);

}  // namespace hvd::petrv2
