#include "runtime/descriptor_limits.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/resource.h>

namespace hvd {

DescriptorLimits descriptor_limits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return {limit.rlim_cur, limit.rlim_max};
}

std::string describe(const DescriptorLimits& limits) {
  return fmt::format("at most {} open files (hard limit {})", limits.soft, limits.hard);
}

std::string describe_descriptor_error(int error) {
  if (error != EMFILE) return strerror(error);
  return fmt::format("{}: this process may have {}; raise ulimit -n before it is started",
                     strerror(error), describe(descriptor_limits()));
}

bool is_descriptor_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace hvd
