#include "agent/arguments.h"

#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::string_view kDefaultMarker = "HVDRUN1";
constexpr std::size_t kJobIdDigits = 32;

// Takes one option with its value; false if it is none or the value is no good.
bool take_value(AgentArguments& result, std::string_view name, std::string_view value) {
  if (value.empty()) return false;
  if (name == "--marker") {
    result.marker = value;
  } else if (name == "--job") {
    result.job_id = value;
    return is_job_id(value);
  } else if (name == "--node") {
    result.node = parse_number<std::uint32_t>(value);
    return result.node.has_value();
  } else if (name == "--cgroup-root") {
    result.cgroup_root = value;
  } else if (name == "--grace-ms") {
    const auto number = parse_number<std::uint32_t>(value);
    if (number) result.grace = std::chrono::milliseconds(*number);
    return number.has_value();
  } else if (name == "--job-dir") {
    result.job_dir = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool is_job_id(std::string_view text) {
  return text.size() == kJobIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<AgentArguments> parse_arguments(const std::vector<std::string_view>& words) {
  AgentArguments result;
  if (words.empty()) return std::nullopt;
  if (words[0] == "reap") {
    result.role = AgentArguments::Role::kReap;
  } else if (words[0] == "--stdio") {
    result.marker = kDefaultMarker;
  } else {
    return std::nullopt;
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--user-scope") {
      result.wants_user_scope = true;
      continue;
    }
    if (i + 1 == words.size() || !take_value(result, words[i], words[i + 1])) return std::nullopt;
    ++i;
  }
  // The mark has two parts or none; who reaps must know whom.
  const bool has_job = !result.job_id.empty();
  if (has_job != result.node.has_value()) return std::nullopt;
  if (result.role == AgentArguments::Role::kReap && !has_job) return std::nullopt;
  return result;
}

}  // namespace hvd
