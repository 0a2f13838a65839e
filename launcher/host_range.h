// Ranges in host names, "node[01-04,7]", as Slurm and pdsh write them. Pure; errors are exit 2 and
// name the token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// The most hosts of a job, and names of one range.
inline constexpr std::size_t kMostHosts = 65536;
inline constexpr std::size_t kMostGpus = 1U << 20U;  // of all hosts

// The items between commas that stand outside of brackets, without blanks round them. One empty
// item for an empty text.
[[nodiscard]] std::vector<std::string_view> split_host_items(std::string_view text);

// "rack[1-2]-node[08-10]" in the order of its numbers, the last bracket fastest. Numbers have as
// many digits as the first of their range is written with: [08-10] is 08 09 10. A name without a
// bracket is itself.
[[nodiscard]] Result<std::vector<std::string>> expand_host_range(std::string_view name);

}  // namespace hvd
