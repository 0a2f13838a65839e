// How many descriptors this process may have open, for whoever needs one for each peer.
#pragma once

#include <cstdint>
#include <string>

namespace hvd {

struct DescriptorLimits {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

[[nodiscard]] DescriptorLimits descriptor_limits();
// "at most 1024 open files (hard limit 4096)": for the texts of failures.
[[nodiscard]] std::string describe(const DescriptorLimits& limits);

// What `error` of a call that makes a descriptor means: strerror's words, with the limits where
// there are too many.
[[nodiscard]] std::string describe_descriptor_error(int error);
// Whether waiting does not help: this process or its machine has no descriptor or memory for one.
[[nodiscard]] bool is_descriptor_shortage(int error);

}  // namespace hvd
