// A worker of the runtime that does nothing but write its timeline: steps of 20 ms with two buckets
// each.
//   timeline_worker [STEPS [MARKS]]
// STEPS 0: for ever. MARKS: so many instants more in each step. Prints "rank R at step S" every
// tenth step. Exit: 0, 1 with a sentence on stderr.
#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "runtime/timeline_environment.h"

namespace {

using hvd::Nanos;
using std::chrono::milliseconds;

void rest(milliseconds duration) { std::this_thread::sleep_for(duration); }

void write_bucket(hvd::Timeline& timeline, int bucket) {
  const Nanos begin = hvd::boottime_now();
  rest(milliseconds(2));
  const Nanos filled = hvd::boottime_now();
  rest(milliseconds(4));
  const Nanos end = hvd::boottime_now();
  timeline.span(bucket, "MEMCPY_IN_FUSION_BUFFER", begin, filled);
  timeline.span(bucket, "TCP_ALLREDUCE", filled, end, "{\"bytes\":1048576}");
  timeline.span(bucket, "ALLREDUCE", begin, end);
}

void write_step(hvd::Timeline& timeline, std::uint64_t step, int num_marks) {
  const Nanos begin = hvd::boottime_now();
  timeline.start_step(step, begin);
  write_bucket(timeline, 0);
  write_bucket(timeline, 1);
  for (int i = 0; i < num_marks; ++i) timeline.instant(1, "MARK", hvd::boottime_now());
  rest(milliseconds(8));
  timeline.span(hvd::kStepTrack, fmt::format("STEP {}", step), begin, hvd::boottime_now());
}

}  // namespace

int main(int argc, char** argv) {
  const char* const rank_text = getenv("RANK");
  const char* const host = getenv("HOROVOD_HOSTNAME");
  const std::uint64_t num_steps = argc > 1 ? strtoull(argv[1], nullptr, 10) : 10;
  const int num_marks = argc > 2 ? atoi(argv[2]) : 0;
  const int rank = rank_text == nullptr ? 0 : atoi(rank_text);
  std::unique_ptr<hvd::Timeline> timeline;
  const auto options = hvd::timeline_from_environment(rank, host == nullptr ? "here" : host);
  if (options && options->has_value()) {
    auto opened = hvd::Timeline::open(**options);
    if (!opened) {
      fmt::print(stderr, "rank {}: {}\n", rank, opened.error().message);
      return 1;
    }
    timeline = std::move(*opened);
    timeline->name_track(0, "bucket 0: \"head\"");
    timeline->name_track(1, "bucket 1");
  }
  for (std::uint64_t step = 1; num_steps == 0 || step <= num_steps; ++step) {
    timeline ? write_step(*timeline, step, num_marks) : rest(milliseconds(20));
    if (step % 10 == 0) fmt::print("rank {} at step {}\n", rank, step);
    fflush(stdout);
  }
  return 0;
}
