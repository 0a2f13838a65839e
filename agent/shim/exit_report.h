// What became of a worker, as data: made from what the kernel says at the reaping and from the file
// in which the worker itself may have written why it failed.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>

#include <string>
#include <string_view>

#include "agent/shim/worker.h"
#include "base/clock.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

struct Ending {
  siginfo_t info{};
  rusage usage{};
  bool is_stopping = false;  // the ladder had begun
  bool was_swept = false;    // SIGKILL of the container went to it
  hvdrun::v1::OomFacts oom;  // where SIGKILL ended it
  Nanos time{0};             // CLOCK_BOOTTIME
};

// Pure but for the error file, which is read if it lies in `job_dir`.
[[nodiscard]] hvdrun::v1::ExitReport report_ending(const Worker& worker, const Ending& ending,
                                                   const std::string& job_dir);

// A worker that never ran.
[[nodiscard]] hvdrun::v1::ExitReport report_failed_start(const Worker& worker, bool is_stopping,
                                                         Nanos time);

// At most 64 KiB of a regular file below `dir`, reached through no link; else empty.
[[nodiscard]] std::string read_below(const std::string& dir, std::string_view path);

}  // namespace hvd
