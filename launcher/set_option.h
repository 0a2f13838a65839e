// Puts one option of the command line, the environment or a file in its place.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "launcher/argv_scan.h"
#include "launcher/options.h"

namespace hvd {

// What the setters fill: the options and what can only be judged when all of them are known.
struct OptionsDraft {
  Options options;
  std::optional<std::string> hosts;
  std::optional<std::string> hostfile;
  std::optional<std::string> include;
  std::optional<std::string> exclude;
  EnvList tunables;
  std::optional<std::chrono::nanoseconds> heartbeat;
  const EnvList* environment = nullptr;  // not owned
};

// Puts a parsed value in its place or hands its error on.
template <typename Target, typename Value>
[[nodiscard]] Result<void> assign(Target& target, Result<Value> value) {
  if (!value) return tl::unexpected(std::move(value.error()));
  target = std::move(*value);
  return {};
}

// Errors name the option and its value: ExitCode::kUsage.
[[nodiscard]] Result<void> set_option(OptionsDraft& draft, const Occurrence& it);

}  // namespace hvd
