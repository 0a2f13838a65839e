// A rank that comes to its job by Runtime::init, whatever started it; runtime_test.py says what is
// to come of it.
//   runtime_worker MODE
//     ok        all-reduces, tells its place, finalizes
//     plan      registers a plan that no other rank has
//     leave     rank 1 leaves with code 74 ("of its own accord") in the middle of all-reduces
//     vanish    rank 1 ends with code 9 without a word in the middle of all-reduces
//     limits    as ok, and tells its limits of open files: "soft hard"
//     roots     as ok, but every rank broadcasts from itself first
//     idle      as vanish, but the others wait for nothing and nobody
// START_TIMEOUT_MS in the environment: of init. Errors end it as they should end a worker.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hvdrun/runtime.h"
#include "runtime/worker_exit.h"

namespace {

constexpr int kSteps = 5;
constexpr int kOwnReason = 9;
const hvd::Call kCall{std::chrono::seconds(20), nullptr};

hvd::Result<void> step(hvd::Communicator& ranks) {
  auto sum = static_cast<double>(ranks.rank() + 1);
  const auto done = ranks.all_reduce(&sum, 1, hvd::DataType::kFloat64, {}, kCall);
  if (!done) return hvd::collective_error(ranks, done.error());
  if (sum == ranks.size() * (ranks.size() + 1) / 2) return {};
  return hvd::worker_error(hvd::WorkerExit::kInternal, "a sum is {}", sum);
}

void go_wrong(hvd::Runtime& job, std::string_view mode) {
  if (job.place().rank != 1) {
    if (mode == "idle") pause();
    return;
  }
  if (mode == "vanish" || mode == "idle") _exit(kOwnReason);
  if (mode == "leave") {
    job.leave(hvd::worker_error(hvd::WorkerExit::kData, "of its own accord").value());
  }
}

void print_limits() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  fmt::print("{} {}\n", limit.rlim_cur, limit.rlim_max);
}

hvd::Result<void> broadcast_from_self(hvd::Communicator& ranks) {
  double value = 0;
  const auto done = ranks.broadcast(&value, 1, hvd::DataType::kFloat64, ranks.rank(), kCall);
  if (!done) return hvd::collective_error(ranks, done.error());
  return {};
}

hvd::Result<void> work(hvd::Runtime& job, std::string_view mode) {
  if (mode == "limits") print_limits();
  if (mode == "roots") {
    auto done = broadcast_from_self(job.cpu());
    if (!done) return done;
  }
  for (int i = 0; i < kSteps; ++i) {
    auto done = step(job.cpu());
    if (!done) return done;
    if (i == 1) go_wrong(job, mode);
  }
  const hvd::Place& place = job.place();
  fmt::print("rank {} of {}, local {} of {}, cross {} of {}, by '{}'\n", place.rank, place.size,
             place.local_rank, place.local_size, place.cross_rank, place.cross_size,
             place.launcher);
  std::fflush(stdout);
  return job.finalize(std::chrono::seconds(20));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string_view mode = argv[1];
  hvd::InitOptions options;
  options.plan = mode == "plan" ? fmt::format("of process {}", getpid()) : "of the test";
  if (const char* limit = std::getenv("START_TIMEOUT_MS")) {
    options.start_timeout = std::chrono::milliseconds(std::atoi(limit));
  }
  auto job = hvd::Runtime::init(options);
  if (!job) {
    fmt::print(stderr, "runtime_worker: {}\n", job.error().message);
    return static_cast<int>(job.error().code);
  }
  const auto done = work(**job, mode);
  if (!done) (*job)->leave(done.error());
}
