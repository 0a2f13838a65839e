#include "agent/arguments.h"

#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::string_view kDefaultMarker = "HVDRUN1";
constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::size_t kJobIdDigits = 32;

template <typename T>
Result<void> take_number(std::optional<T>& number, std::string_view name, std::string_view value) {
  number = parse_number<T>(value);
  if (number) return {};
  return make_error(ExitCode::kUsage, "{} \"{}\": give a number", name, value);
}

Result<void> take_job(AgentArguments& result, std::string_view value) {
  if (!is_job_id(value)) {
    return make_error(ExitCode::kUsage,
                      "--job \"{}\": a job is named by the 32 hexadecimal digits that hvdrun tells",
                      value);
  }
  result.job_id = value;
  return {};
}

Result<void> take_socket(AgentArguments& result, std::string_view value) {
  const bool is_unix = value.starts_with(kUnixPrefix);
  result.socket = is_unix ? value.substr(kUnixPrefix.size()) : std::string_view();
  if (result.socket.starts_with('/')) return {};
  return make_error(ExitCode::kUsage,
                    "--listen \"{}\": give unix: and an absolute path, as in "
                    "unix:/run/hvdrun/agent.sock",
                    value);
}

Result<void> take_value(AgentArguments& result, std::string_view name, std::string_view value) {
  if (name == "--job") return take_job(result, value);
  if (name == "--node") return take_number(result.node, name, value);
  if (name == "--listen") return take_socket(result, value);
  if (name == "--grace-ms") {
    std::optional<std::uint32_t> number;
    auto taken = take_number(number, name, value);
    if (taken) result.grace = std::chrono::milliseconds(*number);
    return taken;
  }
  if (name == "--marker") {
    result.marker = value;
  } else if (name == "--cgroup-root") {
    result.cgroup_root = value;
  } else if (name == "--job-dir") {
    result.job_dir = value;
  } else if (name == "--config") {
    result.config_file = value;
  } else {
    return make_error(ExitCode::kUsage, "there is no option {}; see hvd-agent --help", name);
  }
  return {};
}

std::optional<AgentArguments::Role> role_of(std::string_view word) {
  if (word == "reap") return AgentArguments::Role::kReap;
  if (word == "serve") return AgentArguments::Role::kListen;
  if (word == "job") return AgentArguments::Role::kJob;
  if (word == "--stdio") return AgentArguments::Role::kServe;
  return std::nullopt;
}

bool* flag_of(AgentArguments& result, std::string_view word) {
  if (word == "--user-scope") return &result.wants_user_scope;
  if (word == "--unit") return &result.is_unit;
  return word == "--check" ? &result.is_check : nullptr;
}

// The mark has two parts or none; who reaps must know whom; who listens serves any job, and says
// where.
Result<void> check_together(const AgentArguments& arguments) {
  const bool has_job = !arguments.job_id.empty();
  const bool is_reaping = arguments.role == AgentArguments::Role::kReap;
  const bool is_listening = arguments.role == AgentArguments::Role::kListen;
  const bool is_job = arguments.role == AgentArguments::Role::kJob;
  if (has_job != arguments.node.has_value() || ((is_reaping || is_job) && !has_job)) {
    return make_error(ExitCode::kUsage, "give --job ID and --node INDEX together");
  }
  if (is_listening && arguments.socket.empty() == arguments.config_file.empty()) {
    return make_error(ExitCode::kUsage,
                      "serve: say where, as in --listen unix:/run/hvdrun/agent.sock, or --config "
                      "FILE");
  }
  if (is_listening && (has_job || arguments.wants_user_scope)) {
    return make_error(ExitCode::kUsage, "serve takes any job: no --job, --node or --user-scope");
  }
  if (arguments.is_check && arguments.config_file.empty()) {
    return make_error(ExitCode::kUsage, "--check is of hvd-agent serve --config FILE");
  }
  if (arguments.is_unit && !is_job)
    return make_error(ExitCode::kUsage, "--unit is of hvd-agent job");
  if (!is_listening && !(arguments.socket.empty() && arguments.config_file.empty())) {
    return make_error(ExitCode::kUsage, "--listen and --config are of hvd-agent serve");
  }
  return {};
}

}  // namespace

bool is_job_id(std::string_view text) {
  return text.size() == kJobIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<AgentArguments> parse_arguments(const std::vector<std::string_view>& words) {
  AgentArguments result;
  const auto role = role_of(words.empty() ? "" : words[0]);
  if (!role) {
    return make_error(ExitCode::kUsage,
                      "the first word is --stdio, serve or reap; see hvd-agent --help");
  }
  result.role = *role;
  if (result.role == AgentArguments::Role::kServe) result.marker = kDefaultMarker;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (bool* const flag = flag_of(result, words[i])) {
      *flag = true;
      continue;
    }
    if (!words[i].starts_with('-')) {
      return make_error(ExitCode::kUsage, "{}: this word is not known here; see hvd-agent --help",
                        words[i]);
    }
    const std::string_view value = i + 1 < words.size() ? words[i + 1] : std::string_view();
    if (value.empty()) return make_error(ExitCode::kUsage, "{}: its value is missing", words[i]);
    if (auto taken = take_value(result, words[i], value); !taken) {
      return tl::unexpected(taken.error());
    }
    ++i;
  }
  if (auto checked = check_together(result); !checked) return tl::unexpected(checked.error());
  return result;
}

}  // namespace hvd
