#include "launcher/env_size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hvd {
namespace {

constexpr std::size_t kNumShown = 3;

std::string size_text(std::uint64_t bytes) {
  constexpr double kKib = 1024;
  const auto number = static_cast<double>(bytes);
  if (number >= kKib * kKib) return fmt::format("{:.1f} MiB", number / (kKib * kKib));
  if (number >= kKib) return fmt::format("{:.1f} KiB", number / kKib);
  return fmt::format("{} bytes", bytes);
}

// Of "NAME=VALUE" and its end.
std::uint64_t string_bytes(const EnvList::value_type& variable) {
  return variable.first.size() + variable.second.size() + 2;
}

std::uint64_t exec_bytes(const std::vector<std::string>& command, const EnvList& environment) {
  std::uint64_t bytes = (command.size() + environment.size()) * sizeof(char*);
  for (const std::string& word : command) bytes += word.size() + 1;
  for (const auto& variable : environment) bytes += string_bytes(variable);
  return bytes;
}

constexpr const char* kRemedy =
    "leave what the processes do not need at home with --env-deny NAME, or give them the name of a "
    "file";

Result<void> check_strings(const std::vector<std::string>& command, const EnvList& environment) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i].size() + 1 <= kMostStringBytes) continue;
    return make_error(ExitCode::kUsage,
                      "word {} of COMMAND has {}, and the kernel gives a process at most {} in one "
                      "word; write it into a file that every node has",
                      i + 1, size_text(command[i].size()), size_text(kMostStringBytes));
  }
  for (const auto& variable : environment) {
    if (string_bytes(variable) <= kMostStringBytes) continue;
    return make_error(
        ExitCode::kUsage,
        "the variable {} takes {}, and the kernel gives a process at most {} in one; {}",
        variable.first, size_text(string_bytes(variable)), size_text(kMostStringBytes), kRemedy);
  }
  return {};
}

}  // namespace

std::uint64_t exec_limit(std::uint64_t stack_limit) {
  return std::clamp(stack_limit / 4, kMostStringBytes, kMostExecBytes);
}

Result<void> check_exec_size(const std::vector<std::string>& command, const EnvList& environment,
                             std::uint64_t limit, std::string_view where) {
  const EnvList merged = merge_env({&environment}, {});
  if (auto fit = check_strings(command, merged); !fit) return fit;
  const std::uint64_t bytes = exec_bytes(command, merged);
  if (bytes <= limit) return {};
  return make_error(
      ExitCode::kUsage,
      "{}COMMAND and the variables for it take {}, more than the {} that a process can be given{}; "
      "the largest: {}; {}",
      where, size_text(bytes), size_text(limit),
      limit < kMostExecBytes ? " there (a quarter of its stack limit, see ulimit -s)" : "",
      largest_variables(merged), kRemedy);
}

std::string largest_variables(const EnvList& environment) {
  EnvList sorted = merge_env({&environment}, {});
  const auto is_larger = [](const auto& a, const auto& b) {
    return string_bytes(a) > string_bytes(b);
  };
  std::stable_sort(sorted.begin(), sorted.end(), is_larger);
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kNumShown, sorted.size()); ++i) {
    shown.push_back(fmt::format("{} {}", sorted[i].first, size_text(string_bytes(sorted[i]))));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace hvd
