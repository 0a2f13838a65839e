#include "launcher/reap_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/lines.h"
#include "launcher/transport/boot_script.h"

namespace hvd {
namespace {

using nlohmann::json;

template <typename T>
T value_of(const json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<std::string>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->get<bool>() : otherwise;
  } else {
    return found->is_number_integer() ? found->get<T>() : otherwise;
  }
}

void take_survivor(const json& told, v1::Survivor* survivor) {
  survivor->set_pid(value_of<std::int32_t>(told, "pid", 0));
  survivor->set_uid(value_of<std::uint32_t>(told, "uid", 0));
  survivor->set_state(value_of<std::string>(told, "state", ""));
  survivor->set_wchan(value_of<std::string>(told, "wchan", ""));
  survivor->set_command(value_of<std::string>(told, "command", ""));
  const auto ports = told.find("ports");
  if (ports == told.end() || !ports->is_array()) return;
  for (const json& port : *ports) {
    if (port.is_number_unsigned()) survivor->add_listening_ports(port.get<std::uint32_t>());
  }
}

Result<v1::Finished> take_answer(const json& answer) {
  const auto doubt = value_of<std::string>(answer, "doubt", "");
  v1::Finished end;
  end.set_clean(value_of<bool>(answer, "clean", false));
  end.set_num_killed(value_of<std::uint32_t>(answer, "killed", 0));
  const auto survivors = answer.find("survivors");
  if (survivors != answer.end() && survivors->is_array()) {
    for (const json& told : *survivors) {
      if (told.is_object()) take_survivor(told, end.add_survivors());
    }
  }
  if (end.survivors_size() == 0 && !doubt.empty()) return make_error("{}", doubt);
  return end;
}

}  // namespace

std::vector<std::string> agent_words(std::string_view job_id, std::uint32_t node,
                                     std::string_view cgroup_root, bool is_remote) {
  std::vector<std::string> words = {"--stdio", "--job", std::string(job_id), "--node",
                                    fmt::format("{}", node)};
  if (is_plain_word(cgroup_root)) {
    words.insert(words.end(), {"--cgroup-root", std::string(cgroup_root)});
  }
  if (is_remote) words.push_back("--user-scope");
  return words;
}

std::vector<std::string> reap_words(std::vector<std::string> agent_words, Nanos grace,
                                    std::string_view job_dir) {
  std::vector<std::string> words = std::move(agent_words);
  words.front() = "reap";
  std::erase(words, "--user-scope");
  words.insert(words.end(), {"--grace-ms", fmt::format_int(to_ms(grace)).str()});
  if (is_plain_word(job_dir)) words.insert(words.end(), {"--job-dir", std::string(job_dir)});
  return words;
}

Result<v1::Finished> parse_reap_answer(std::string_view output, std::string_view job_id,
                                       std::uint32_t node) {
  while (!output.empty()) {
    const json answer = json::parse(take_line(output), nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object() || value_of<std::string>(answer, "job", "") != job_id) continue;
    if (value_of<std::uint32_t>(answer, "node", node + 1) == node) return take_answer(answer);
  }
  return make_error("it was reached again, but did not say what is left");
}

}  // namespace hvd
