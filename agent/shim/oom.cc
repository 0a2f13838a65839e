#include "agent/shim/oom.h"

#include <fmt/format.h>

#include "agent/shim/job_cgroup.h"
#include "base/lines.h"
#include "base/parse_number.h"
#include "base/read_file.h"

namespace hvd {
namespace {

std::optional<std::uint64_t> count_in(const std::string& root, const std::string& group) {
  return parse_counter(read_small_file(fmt::format("{}{}/memory.events", root, group)), "oom_kill");
}

std::optional<std::uint64_t> count_on_node() {
  return parse_counter(read_small_file("/proc/vmstat"), "oom_kill");
}

}  // namespace

std::optional<std::uint64_t> parse_counter(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ' ') continue;
    return parse_number<std::uint64_t>(line.substr(name.size() + 1));
  }
  return std::nullopt;
}

OomCounter OomCounter::of(pid_t pid, const std::string& root) {
  auto group = parse_own_cgroup(read_small_file(fmt::format("/proc/{}/cgroup", pid)));
  return in(root, root.empty() || group == "/" ? "" : group.value_or(""));
}

OomCounter OomCounter::in(const std::string& root, std::string group) {
  OomCounter counter;
  counter.root_ = root;
  counter.node_start_ = count_on_node();
  for (; !group.empty(); group.erase(group.rfind('/'))) {
    const auto count = count_in(root, group);
    if (!count) continue;
    counter.group_ = group;
    counter.group_start_ = *count;
    break;
  }
  return counter;
}

hvdrun::v1::OomFacts OomCounter::facts(bool is_own) const {
  hvdrun::v1::OomFacts facts;
  facts.set_cgroup(group_);
  facts.set_is_own(is_own && !group_.empty());
  const auto count = group_.empty() ? std::nullopt : count_in(root_, group_);
  facts.set_is_counted(count.has_value());
  if (count && *count > group_start_) facts.set_kills(*count - group_start_);
  const auto node = node_start_ ? count_on_node() : std::nullopt;
  facts.set_is_node_counted(node.has_value());
  if (node && *node > *node_start_) facts.set_node_kills(*node - *node_start_);
  return facts;
}

}  // namespace hvd
