// The subcommands `petrv2 synth` and `petrv2 convert`: read the options, do the work, print what
// came of it (text, or one JSON object with --json). Thread: main's, once.
#pragma once

#include <string>
#include <vector>

namespace hvd::petrv2 {

// `words`: the options, without the subcommand. The exit code: 0; 2 with one sentence on standard
// error for a wrong option; 74 with one sentence where data could not be read or written.
[[nodiscard]] int run_synth(const std::vector<std::string>& words);
[[nodiscard]] int run_convert(const std::vector<std::string>& words);

}  // namespace hvd::petrv2
