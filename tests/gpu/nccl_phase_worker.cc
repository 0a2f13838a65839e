// A rank of a job on NCCL that goes wrong at one point of its life; nccl_test.py says what the
// others have to make of it.
//   nccl_phase_worker PHASE FAULT VICTIM DEADLINE_MS
// PHASE, where rank VICTIM does it:
//   before_id      before the ranks meet
//   in_init        where the others have entered NCCL's init and it is about to
//   in_enqueue     where the others have handed over an all-reduce and it is about to
//   in_collective  nowhere: the test does it, from outside, while all-reduces run
//   in_finalize    where it is about to finalize
// FAULT: kill, stop (SIGSTOP) or delay (sleeps for twice the deadline and goes on); none: a job
// that ends well. Prints "running" in the all-reduces, and "fault".
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <string>
#include <thread>

#include "hvdrun/runtime.h"

namespace {

using hvd::Result;
using std::chrono::milliseconds;

constexpr std::size_t kCount = 1U << 20U;
constexpr int kSteps = 4;

struct Plan {
  std::string phase;
  std::string fault;
  int victim = 0;
  milliseconds deadline{};

  // The point where it happens, if this is the rank and the phase.
  void pass(const char* here, int rank) const {
    if (rank != victim || phase != here || fault == "none") return;
    fmt::print("fault\n");
    std::fflush(stdout);
    if (fault == "kill") raise(SIGKILL);
    if (fault == "stop") raise(SIGSTOP);
    if (fault == "delay") std::this_thread::sleep_for(2 * deadline);
  }
};

Result<void> reduce_for_long(hvd::Communicator& ranks, const Plan& plan) {
  void* data = nullptr;
  if (cudaMalloc(&data, kCount * sizeof(float)) != cudaSuccess) {
    return hvd::make_error("the GPU has no {} bytes", kCount * sizeof(float));
  }
  const hvd::Call call{plan.deadline, nullptr};
  for (int step = 0; step < kSteps || plan.phase == "in_collective"; ++step) {
    if (step == 1) {
      fmt::print("running\n");
      std::fflush(stdout);
    }
    if (step == 2) plan.pass("in_enqueue", ranks.rank());
    auto done =
        ranks.all_reduce(data, kCount, hvd::DataType::kFloat32, {hvd::ReduceOp::kAverage, 1}, call);
    if (done) done = ranks.wait(call);
    if (!done) return done;
  }
  return {};
}

Result<void> work(hvd::Runtime& job, const Plan& plan) {
  const int rank = job.place().rank;
  plan.pass("in_init", rank);
  auto ranks = job.cuda();
  if (!ranks) return tl::unexpected(ranks.error());
  auto done = reduce_for_long(**ranks, plan);
  if (!done) return done;
  plan.pass("in_finalize", rank);
  return job.finalize(plan.deadline);
}

}  // namespace

int main(int argc, char** argv) {
  const auto place = hvd::place_of_this_process();
  if (argc != 5 || !place) {
    fmt::print(stderr, "usage: hvdrun ... nccl_phase_worker PHASE FAULT VICTIM DEADLINE_MS\n");
    return 2;
  }
  const Plan plan{argv[1], argv[2], atoi(argv[3]), milliseconds(atoi(argv[4]))};
  plan.pass("before_id", place->rank);
  hvd::InitOptions options;
  options.device = hvd::may_share_gpus() ? 0 : place->local_rank;
  const bool is_at_start = plan.phase == "before_id" || plan.phase == "in_init";
  if (is_at_start) options.start_timeout = plan.deadline;
  auto job = hvd::Runtime::init(options);
  if (!job) {
    fmt::print(stderr, "rank {}: {}\n", place->rank, job.error().message);
    return static_cast<int>(job.error().code);
  }
  auto done = work(**job, plan);
  if (!done) (*job)->leave(done.error());
}
