#include "agent/process_limit.h"

#include <fmt/format.h>

#include <optional>

#include "base/lines.h"
#include "base/parse_number.h"
#include "base/read_file.h"

namespace hvd {
namespace {

// A process that has just been refused may have gone; threads come in few.
constexpr std::uint64_t kNearly = 4;

std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::string text = read_first_line(path);
  return parse_number<std::uint64_t>(text);  // "max" is none
}

std::string full_one_above(const std::string& mount, std::string path) {
  while (true) {
    const std::string folder = mount + path;
    const auto most = number_in(folder + "/pids.max");
    const auto there = number_in(folder + "/pids.current");
    if (most && there && *there + kNearly > *most) {
      return fmt::format("pids.max of {} is {}, and {} are there", path.empty() ? "/" : path, *most,
                         *there);
    }
    if (path.empty()) return {};
    path.resize(path.rfind('/'));
  }
}

}  // namespace

// "0::/path" of v2, "8:pids:/path" of v1.
std::string full_pids_cgroup(std::string_view cgroups, const std::string& root) {
  while (!cgroups.empty()) {
    const std::string_view line = take_line(cgroups);
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string path(line.substr(second + 1));
    if (path == "/") path.clear();
    std::string full;
    if (controllers.empty()) full = full_one_above(root, path);
    if (controllers == "pids") full = full_one_above(root + "/pids", path);
    if (!full.empty()) return full;
  }
  return {};
}

}  // namespace hvd
