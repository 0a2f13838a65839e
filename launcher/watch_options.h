// The options about ranks that hang and about the GPUs: what the user asks for. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace hvd {

struct Occurrence;

struct WatchRequest {
  std::optional<std::chrono::nanoseconds> stall_timeout;
  std::vector<std::string> hook;  // words of --on-stall; empty: the kernel's own view
  std::chrono::nanoseconds hook_limit = std::chrono::seconds(5);  // of each rank's
  std::optional<std::chrono::nanoseconds> gpu_period;
};

// The runtime's limit, a variable of the workers: a job that hangs so long is ended.
inline constexpr const char* kStallShutdownVariable = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS";

[[nodiscard]] Result<void> set_watch_option(WatchRequest& request, const Occurrence& it);

// When all options are known: whether --on-stall has an occasion. `has_limit`: there is --timeout
// or the runtime's limit.
[[nodiscard]] Result<void> check_hook(const WatchRequest& request, bool has_limit);

// The words for one rank; {pid} is left to its node.
[[nodiscard]] std::vector<std::string> hook_words(const std::vector<std::string>& hook,
                                                  std::uint32_t rank, const std::string& host);

}  // namespace hvd
