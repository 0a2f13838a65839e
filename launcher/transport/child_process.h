// Starts a program whose standard input and output are one socket that we hold the other end of.
// Its own process group: the terminal's Ctrl-C does not reach it. Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

struct ChildProcess {
  pid_t pid = -1;  // also its process group; to be reaped by the owner
  UniqueFd pidfd;
  UniqueFd stream;      // non-blocking
  UniqueFd error_pipe;  // its standard error; non-blocking
};

// words[0] is looked for in PATH. A program that is not there: ExitCode::kInfrastructure.
[[nodiscard]] Result<ChildProcess> spawn_child(const std::vector<std::string>& words);

// "exit 3", "signal 9" of a waitid() result.
struct ChildEnding {
  int code = 0;  // CLD_EXITED, CLD_KILLED, ...
  int status = 0;
};
[[nodiscard]] std::string describe_ending(const ChildEnding& ending);

}  // namespace hvd
