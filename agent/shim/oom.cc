#include "agent/shim/oom.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "agent/shim/job_cgroup.h"
#include "base/parse_number.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxFile = 65536;  // /proc/vmstat has some 5 KiB

std::string read_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  std::array<char, 4096> block;
  while (fd.is_valid() && content.size() < kMaxFile) {
    const ssize_t n = read(fd.get(), block.data(), block.size());
    if (n <= 0) break;
    content.append(block.data(), static_cast<std::size_t>(n));
  }
  return content;
}

std::optional<std::uint64_t> count_in(const std::string& root, const std::string& group) {
  return parse_counter(read_file(fmt::format("{}{}/memory.events", root, group)), "oom_kill");
}

std::optional<std::uint64_t> count_on_node() {
  return parse_counter(read_file("/proc/vmstat"), "oom_kill");
}

}  // namespace

std::optional<std::uint64_t> parse_counter(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ' ') continue;
    return parse_number<std::uint64_t>(line.substr(name.size() + 1));
  }
  return std::nullopt;
}

OomCounter OomCounter::of(pid_t pid, const std::string& root) {
  auto group = parse_own_cgroup(read_file(fmt::format("/proc/{}/cgroup", pid)));
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
