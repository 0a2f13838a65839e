// A program of the node that the agent runs beside the job, such as nvidia-smi or a user's hook:
// its output comes in pieces, its end is told once, and it never holds anybody up. A guard between
// the agent and the program (guard.h) ends it, and all that it has started, when it is to end, when
// it has ended itself and when the agent has died.
//
// Lifecycle: from start() until on_end or the destructor, which has the guard end it. Thread: the
// loop's; on_end may destroy this.
#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

class OutsideProgram {
 public:
  struct Request {
    std::string executable;          // absolute
    std::vector<std::string> words;  // argv
    EnvList env;                     // complete
    std::string cwd;                 // empty: the agent's
    std::string cgroup = {};         // the job's, to live in; empty: none
    int input = -1;                  // its standard input, not owned; -1: nothing to read
  };
  struct Handlers {
    std::function<void(std::string_view)> on_bytes;      // of stdout and stderr
    std::function<void(const std::string& how)> on_end;  // "ended with code 3"; after all bytes
  };

  [[nodiscard]] static Result<std::unique_ptr<OutsideProgram>> start(Loop& loop,
                                                                     const Request& request,
                                                                     Handlers handlers);
  ~OutsideProgram();
  OutsideProgram(const OutsideProgram&) = delete;
  OutsideProgram& operator=(const OutsideProgram&) = delete;

 private:
  struct State;  // shared with the handlers of its descriptors, which may still be queued
  explicit OutsideProgram(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// What it says of a program that has ended well.
inline constexpr std::string_view kEndedWell = "ended with code 0";

}  // namespace hvd
