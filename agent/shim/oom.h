// How often the kernel has killed for lack of memory since a rank's start: in the rank's control
// group (memory.events, cgroup v2) and on the whole node (/proc/vmstat, which everybody may read).
// A count proves something about one rank only where the group is the rank's own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hvdrun/v1/types.pb.h"

namespace hvd {

// The number behind `name` in lines of "name number". Pure.
[[nodiscard]] std::optional<std::uint64_t> parse_counter(std::string_view text,
                                                         std::string_view name);

class OomCounter {
 public:
  OomCounter() = default;  // has counted nothing

  // Counts from now on in the group that the process is in, or the nearest one above it that counts
  // memory. `root`: of find_cgroup_mount().
  [[nodiscard]] static OomCounter of(pid_t pid, const std::string& root);
  // The same, from this group upwards.
  [[nodiscard]] static OomCounter in(const std::string& root, std::string group);

  // The group's path in the cgroup file system; empty: none counts.
  [[nodiscard]] const std::string& group() const { return group_; }

  // What has been counted by now. `is_own`: no other rank was in the group.
  [[nodiscard]] hvdrun::v1::OomFacts facts(bool is_own) const;

 private:
  std::string root_;
  std::string group_;
  std::uint64_t group_start_ = 0;
  std::optional<std::uint64_t> node_start_;
};

}  // namespace hvd
