#include "agent/stop_reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agent/program_answer.h"
#include "base/lines.h"
#include "base/read_file.h"
#include "base/shown.h"

namespace hvd {
namespace {

// The path in the hierarchy with this list of controllers: "1:name=systemd:/..." is the service
// manager's where it arranges cgroups v1, "0::/..." where v2. Empty: none.
std::string_view path_in(std::string_view cgroups, std::string_view hierarchy) {
  while (!cgroups.empty()) {
    const std::string_view line = take_line(cgroups);
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (line.substr(first + 1, second - first - 1) == hierarchy) return line.substr(second + 1);
  }
  return {};
}

std::optional<OwnUnit> unit_in(std::string_view path) {
  std::optional<OwnUnit> unit;
  bool is_of_user = false;
  while (!path.empty()) {
    std::string_view folder = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    if (folder.starts_with('_')) folder.remove_prefix(1);  // how systemd escapes some names
    if (folder.ends_with(".scope")) unit.reset();
    if (!folder.ends_with(".service")) continue;
    unit = OwnUnit{std::string(folder), is_of_user};
    if (folder.starts_with("user@")) is_of_user = true;
  }
  return unit;
}

// The next word of a line, blanks around it taken off; empty at the end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

ProgramQuestion jobs_question(const OwnUnit& unit, EnvList env) {
  ProgramQuestion question;
  question.words = {"systemctl"};
  if (unit.is_of_user) question.words.emplace_back("--user");
  // Not in full, a name is cut where the line is as long as a terminal's.
  for (const char* word : {"list-jobs", "--no-legend", "--plain", "--full", "--no-pager"}) {
    question.words.emplace_back(word);
  }
  const EnvList plain = {{"LC_ALL", "C"}, {"SYSTEMD_COLORS", "0"}};
  question.env = merge_env({&env, &plain}, {});
  question.limit = kStopQuestionLimit;
  return question;
}

}  // namespace

std::optional<OwnUnit> parse_own_unit(std::string_view cgroups) {
  // A machine may have both hierarchies, and a container on it a systemd that uses but the second.
  const auto unit = unit_in(path_in(cgroups, "name=systemd"));
  return unit ? unit : unit_in(path_in(cgroups, ""));
}

StopReason parse_stop_reason(std::string_view jobs, std::string_view unit) {
  constexpr std::array<std::string_view, 2> kRestarts = {"restart", "try-restart"};
  while (!jobs.empty()) {
    std::string_view line = take_line(jobs);
    next_word(line);
    if (next_word(line) != unit) continue;
    const std::string_view type = next_word(line);
    if (std::find(kRestarts.begin(), kRestarts.end(), type) != kRestarts.end()) {
      return StopReason::kRestart;
    }
    if (type == "stop") return StopReason::kStop;
  }
  return StopReason::kUnknown;
}

Task<StopAnswer> ask_stop_reason(Loop& loop, EnvList env) {
  StopAnswer answer;
  const auto unit = parse_own_unit(read_small_file("/proc/self/cgroup"));
  if (!unit) {
    answer.why = "this process is no service of systemd";
    co_return answer;
  }
  const ProgramAnswer said = co_await ask_program(loop, jobs_question(*unit, std::move(env)));
  if (!said.problem.empty()) {
    std::string_view output = said.output;
    answer.why = fmt::format("systemctl {}", said.problem);
    if (!output.empty()) answer.why += fmt::format(": {}", shown(take_line(output)));
    co_return answer;
  }
  answer.reason = parse_stop_reason(said.output, unit->name);
  if (answer.reason == StopReason::kUnknown) {
    answer.why = fmt::format("systemd has no job for {}", shown(unit->name));
  }
  co_return answer;
}

}  // namespace hvd
