#include "base/process_needs.h"

#include <string.h>
#include <sys/resource.h>

#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "base/signals_blocked.h"

namespace hvd {
namespace {

constexpr int kThreads = 16;
constexpr rlim_t kDescriptors = 32;

// All at once, because the limit is one of a moment.
Result<void> check_threads() {
  const SignalsBlocked blocked;
  std::promise<void> all_there;
  const std::shared_future<void> gate = all_there.get_future().share();
  std::vector<std::thread> threads;
  Result<void> done;
  try {
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([gate] { gate.wait(); });
  } catch (const std::system_error& error) {
    done = make_error(
        "only {} threads can be started here, and {} are needed: {}; raise the limit of processes "
        "(ulimit -u), or of the cgroup (pids.max)",
        threads.size(), kThreads, error.code().message());
  }
  all_there.set_value();
  for (std::thread& thread : threads) thread.join();
  return done;
}

}  // namespace

Result<void> check_process_needs() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < kDescriptors) {
    return make_error(
        "only {} open files are allowed here, and {} are needed: raise the limit "
        "(ulimit -n)",
        limit.rlim_max, kDescriptors);
  }
  return check_threads();
}

std::uint64_t lift_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit lifted{limit.rlim_max, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &lifted);
  return limit.rlim_cur;
}

}  // namespace hvd
