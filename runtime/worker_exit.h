// The exit codes of hvdrun's own workers (docs/ARCHITECTURE.md, "Exit codes"), as the code of an
// Error, so that the first error of a worker decides how it ends.
#pragma once

#include "base/status.h"
#include "hvdrun/communicator.h"

namespace hvd {

enum class WorkerExit : int {
  kInternal = 70,
  kPeerLost = 71,
  kDeadline = 72,
  kMismatch = 73,   // of plan or version among the ranks
  kData = 74,       // data or checkpoint
  kNotFinite = 75,  // too many steps with a gradient that is not finite
  kAbortHung = 76,
  kTerminated = 143,  // saved and ended because it was told to
};

template <typename... Args>
[[nodiscard]] tl::unexpected<Error> worker_error(WorkerExit code,
                                                 fmt::format_string<Args...> format,
                                                 Args&&... args) {
  return make_error(static_cast<ExitCode>(code), format, std::forward<Args>(args)...);
}

// The same error with another exit code.
[[nodiscard]] inline tl::unexpected<Error> with_exit(Error error, WorkerExit code) {
  error.code = static_cast<ExitCode>(code);
  return tl::unexpected(std::move(error));
}

[[nodiscard]] inline WorkerExit exit_of(CommunicatorFailure::Kind kind) {
  switch (kind) {
    case CommunicatorFailure::Kind::kPeerLost:
    case CommunicatorFailure::Kind::kAborted:
      return WorkerExit::kPeerLost;
    case CommunicatorFailure::Kind::kDeadline:
      return WorkerExit::kDeadline;
    case CommunicatorFailure::Kind::kMismatch:
      return WorkerExit::kMismatch;
    case CommunicatorFailure::Kind::kInternal:
      return WorkerExit::kInternal;
  }
  return WorkerExit::kInternal;
}

// `error` of an operation of `communicator`, with the exit code that its failure stands for.
[[nodiscard]] inline tl::unexpected<Error> collective_error(const Communicator& communicator,
                                                            Error error) {
  const auto failure = communicator.failure();
  return with_exit(std::move(error), failure ? exit_of(failure->kind) : WorkerExit::kInternal);
}

}  // namespace hvd
