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

[[nodiscard]] Result<void> set_watch_option(WatchRequest& request, const Occurrence& it);

// The words for one rank; {pid} is left to its node.
[[nodiscard]] std::vector<std::string> hook_words(const std::vector<std::string>& hook,
                                                  std::uint32_t rank, const std::string& host);

}  // namespace hvd
