// `petrv2 inspect`: the parameters of a configuration, or what a folder of records holds.
#pragma once

#include <string>
#include <vector>

namespace hvd::petrv2 {

// arguments: without program and subcommand. Prints on standard output; returns the exit code.
int run_inspect(const std::vector<std::string>& arguments);

}  // namespace hvd::petrv2
