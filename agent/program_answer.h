// One run of a program of the node for what it prints, with a deadline.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "proto/worker_env.h"

namespace hvd {

struct ProgramQuestion {
  std::vector<std::string> words;  // argv; the first is looked for in PATH of `env`
  EnvList env;                     // complete
  Nanos limit{};
};

struct ProgramAnswer {
  std::string output;    // of stdout and stderr, so far; the first kMaxAnswer bytes
  std::string problem;   // "did not end within 5 s", "ended with code 2"; empty: with code 0
  bool is_late = false;  // it was ended at the limit
};

inline constexpr std::size_t kMaxAnswer = 1 << 18;

// Ends by the limit, whatever the program does; it is ended with what it has started. On the loop;
// where the loop goes, the program does too.
[[nodiscard]] Task<ProgramAnswer> ask_program(Loop& loop, ProgramQuestion question);

}  // namespace hvd
