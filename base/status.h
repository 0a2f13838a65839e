// Errors as values: Result<T> holds a T or an Error that says, in one sentence for the user, who
// could not do what and the remedy. An Error is "I could not do it"; what became of a worker is
// data (ExitReport), never an Error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace hvd {

// Exit codes of hvdrun that are not a worker's own (docs/ARCHITECTURE.md, "Exit codes").
enum class ExitCode : int {
  kOk = 0,
  kUsage = 2,
  kTimeout = 124,
  kInfrastructure = 125,
  kNotExecutable = 126,
  kNotFound = 127,
  kBrokenStdout = 141,
};

struct Error {
  std::string message;
  ExitCode code = ExitCode::kInfrastructure;
  bool may_retry = false;  // a dropped connection rather than a refusal

  // The same error with what was being done in front: "spawn rank 3: chdir /data: ENOENT".
  [[nodiscard]] Error within(std::string_view context) const& {
    return {fmt::format("{}: {}", context, message), code, may_retry};
  }
};

template <typename T>
using Result = tl::expected<T, Error>;

// make_error("node {}: refused", name): the unexpected branch of any Result.
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> make_error(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{fmt::format(format, std::forward<Args>(args)...), ExitCode::kInfrastructure, false});
}

template <typename... Args>
[[nodiscard]] tl::unexpected<Error> make_error(ExitCode code, fmt::format_string<Args...> format,
                                               Args&&... args) {
  return tl::unexpected<Error>(
      Error{fmt::format(format, std::forward<Args>(args)...), code, false});
}

}  // namespace hvd
