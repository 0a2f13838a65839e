// The guard mode of this program: runs one other program for the agent and answers for all that
// this one starts. A program that ends, is to end, or whose agent has died takes everything with it
// that descends from it, also what has left its session and cleared its environment: the guard is a
// sub-reaper, so what loses its parent comes to it, and no other job's process can.
//
// Lifecycle: the whole of a process. Thread: one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace hvd {

// What a guard is told. `words` is the program's argv; `cgroup` the job's, in which both are to
// live, empty: they stay in the agent's.
struct Guarded {
  std::string executable;
  std::vector<std::string> words;
  std::string cgroup;
};

// The command line of its guard, a child of `parent`. Pure.
[[nodiscard]] std::vector<std::string> guard_words(const Guarded& guarded, pid_t parent);

// "hvd-agent guard PARENT CGROUP EXECUTABLE WORD...", for main. Ends as the program ended; 126 if
// it cannot be executed or the parent has gone already. SIGTERM, also that of the parent's death,
// ends the program and all of its descendants.
[[nodiscard]] int run_guard(int argc, char** argv);

}  // namespace hvd
