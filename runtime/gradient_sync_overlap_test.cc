// That communication runs beside backward, and what is told about it; with a communicator that does
// what the test wants.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/custom_function.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/activity_board.h"
#include "runtime/flight_recorder.h"
#include "runtime/timeline.h"
#include "tests/support/gradient_ranks.h"
#include "tests/support/twin_communicator.h"

namespace hvd {
namespace {

using test::LinearModel;
using test::make_synchronizer;
using testing::ElementsAre;
using testing::IsEmpty;

// Rank 0 of 2, whose peer has the same data and does not let an all-reduce end before it may.
class StubbornCommunicator final : public test::TwinCommunicator {
 public:
  Result<void> all_reduce(void* /*data*/, std::size_t count, DataType /*type*/,
                          const Reduction& /*reduction*/, const Call& /*call*/) override {
    std::unique_lock lock(mutex_);
    counts_.push_back(count);
    changed_.notify_all();
    changed_.wait(lock, [this] { return num_allowed_ > 0; });
    --num_allowed_;
    return {};
  }

  void allow(int num_operations) {
    const std::lock_guard lock(mutex_);
    num_allowed_ += num_operations;
    changed_.notify_all();
  }
  // Whether that many all-reduces begin within a long time.
  bool wait_for_begun(std::size_t num_operations) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, test::kLongTimeout,
                             [&] { return counts_.size() >= num_operations; });
  }
  std::vector<std::size_t> counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> counts_;  // of elements, of the all-reduces begun
  int num_allowed_ = 0;
};

// Passes its input on; the gradient waits for `condition`.
struct Gate : torch::autograd::Function<Gate> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const std::function<bool()>* condition) {
    context->saved_data["condition"] = reinterpret_cast<std::int64_t>(condition);
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto* condition =
        reinterpret_cast<const std::function<bool()>*>(context->saved_data["condition"].toInt());
    EXPECT_TRUE((*condition)());
    return {gradients[0], at::Tensor()};
  }
};

// Ready in the order a, b, c; each a bucket.
LinearModel three_buckets() {
  LinearModel model;
  model.add("c", {64});
  model.add("b", {32});
  model.add("a", {16});
  return model;
}

SyncOptions a_bucket_each() {
  SyncOptions options;
  options.first_bucket_bytes = 0;
  options.bucket_bytes = 0;
  options.timeout = test::kLongTimeout;
  return options;
}

at::Tensor factor_of(const NamedParameter& parameter) {
  return at::full(parameter.tensor.sizes(), 3, at::kDouble);
}

void run_first_step(LinearModel& model, GradientSynchronizer& synchronizer,
                    StubbornCommunicator& communicator) {
  model.loss(factor_of).backward();
  EXPECT_THAT(communicator.counts(), IsEmpty()) << "the first step does not overlap";
  communicator.allow(3);
  ASSERT_TRUE(synchronizer.finish());
  EXPECT_THAT(communicator.counts(), ElementsAre(16, 32, 64));
  synchronizer.reset();
}

TEST(GradientSyncOverlap, AFullBucketIsSentWhileBackwardGoesOn) {
  StubbornCommunicator communicator;
  LinearModel model = three_buckets();
  const auto synchronizer = make_synchronizer(model, communicator, communicator, a_bucket_each());
  run_first_step(model, *synchronizer, communicator);
  // The gradients of b and c come only after a's all-reduce, which is not over, has begun.
  const std::function<bool()> has_begun = [&] { return communicator.wait_for_begun(4); };
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (const auto& parameter : model.parameters()) {
    const at::Tensor term = (parameter.tensor * factor_of(parameter)).sum();
    loss = loss + (parameter.name == "a" ? term : Gate::apply(term, &has_begun));
  }
  loss.backward();
  // Backward is over, the others wait for the first, in order.
  EXPECT_EQ(communicator.counts().size(), 4U);
  EXPECT_TRUE(model["c"].grad().defined());
  communicator.allow(3);
  ASSERT_TRUE(synchronizer->finish());
  EXPECT_THAT(communicator.counts(), ElementsAre(16, 32, 64, 16, 32, 64));
}

TEST(GradientSyncOverlap, TheBoardSaysWhatIsAwaitedAndWhatIsLacking) {
  StubbornCommunicator communicator;
  ActivityBoard board;
  FlightRecorder recorder;
  LinearModel model = three_buckets();
  SyncOptions options = a_bucket_each();
  options.board = &board;
  options.recorder = &recorder;
  const auto synchronizer = make_synchronizer(model, communicator, communicator, options);
  run_first_step(model, *synchronizer, communicator);
  EXPECT_EQ(board.read().scheduled, 3U);
  EXPECT_EQ(board.read().completed, 3U);
  EXPECT_EQ(board.read().waiting_for, "");
  EXPECT_THAT(board.read().missing, ElementsAre("a"));

  // Without b the third bucket is full, but not sent.
  model.loss([](const NamedParameter& p) { return p.name == "b" ? at::Tensor() : factor_of(p); })
      .backward();
  EXPECT_TRUE(communicator.wait_for_begun(4));
  const Activity stalled = board.read();
  EXPECT_EQ(stalled.scheduled, 4U);
  EXPECT_EQ(stalled.completed, 3U);
  EXPECT_EQ(stalled.waiting_for, "all_reduce of bucket 0");
  EXPECT_THAT(stalled.missing, ElementsAre("b"));
  EXPECT_EQ(stalled.num_missing, 1U);
  ASSERT_EQ(recorder.entries().size(), 4U);
  EXPECT_EQ(recorder.entries().back().state, FlightState::kStarted);
  EXPECT_EQ(recorder.entries().back().operation, "tcp:all_reduce");
  EXPECT_EQ(recorder.entries().back().num_bytes, 16 * sizeof(double));

  communicator.allow(3);
  ASSERT_TRUE(synchronizer->finish());
  EXPECT_EQ(synchronizer->num_missing(), 1);
  EXPECT_EQ(board.read().completed, 6U);
  EXPECT_THAT(board.read().missing, IsEmpty());
  for (const FlightEntry& entry : recorder.entries()) {
    EXPECT_EQ(entry.state, FlightState::kCompleted);
    EXPECT_EQ(entry.bucket, static_cast<int>((entry.sequence - 1) % 3));
    EXPECT_LE(entry.created, entry.started);
    EXPECT_LE(entry.started, entry.completed);
  }
}

TEST(GradientSyncOverlap, TheBoardNamesSixOfTheTensorsThatABucketLacks) {
  StubbornCommunicator communicator;
  ActivityBoard board;
  LinearModel model;
  for (int i = 19; i >= 0; --i) model.add(fmt::format("p{:02}", i), {2});
  SyncOptions options = a_bucket_each();
  options.first_bucket_bytes = 1 << 20;
  options.board = &board;
  const auto synchronizer = make_synchronizer(model, communicator, communicator, options);
  communicator.allow(1);
  model.loss(factor_of).backward();
  ASSERT_TRUE(synchronizer->finish());
  synchronizer->reset();
  EXPECT_EQ(board.read().num_missing, 20U);
  EXPECT_THAT(board.read().missing, ElementsAre("p00", "p01", "p02", "p03", "p04", "p05"));
  // The first twelve come.
  model.loss([](const NamedParameter& p) { return p.name < "p12" ? factor_of(p) : at::Tensor(); })
      .backward();
  EXPECT_EQ(board.read().num_missing, 8U);
  EXPECT_THAT(board.read().missing, ElementsAre("p12", "p13", "p14", "p15", "p16", "p17"));
  communicator.allow(1);
  ASSERT_TRUE(synchronizer->finish());
}

// The spans of a bucket that have this name. Track 0 of the trace is the trainer's.
std::vector<nlohmann::json> spans(const nlohmann::json& events, int bucket, const char* name) {
  std::vector<nlohmann::json> found;
  for (const auto& event : events) {
    if (event.value("ph", "") == "X" && event.value("tid", -1) == bucket + 1 &&
        event.value("name", "") == name) {
      found.push_back(event);
    }
  }
  return found;
}

double end_of(const nlohmann::json& span) {
  return span.at("ts").get<double>() + span.at("dur").get<double>();
}

TEST(GradientSyncOverlap, TheTimelineShowsEachBucketsWay) {
  const std::string path = testing::TempDir() + fmt::format("gradient_sync_{}.json", getpid());
  StubbornCommunicator communicator;
  LinearModel model;
  model.add("wide", {4000}, at::kFloat);
  model.add("first", {1}, at::kFloat);
  {
    TimelineOptions timeline_options;
    timeline_options.path = path;
    auto timeline = Timeline::open(timeline_options);
    ASSERT_TRUE(timeline) << timeline.error().message;
    (*timeline)->start_step(0, boottime_now());
    SyncOptions options = a_bucket_each();
    options.compression = Compression::kFloat16;
    options.timeline = timeline->get();
    const auto synchronizer = make_synchronizer(model, communicator, communicator, options);
    communicator.allow(4);
    for (int step = 0; step < 2; ++step) {
      synchronizer->reset();
      model.loss([](const NamedParameter& p) { return at::ones_like(p.tensor.detach()); })
          .backward();
      ASSERT_TRUE(synchronizer->finish());
    }
  }
  const auto events = nlohmann::json::parse(std::ifstream(path));
  unlink(path.c_str());
  for (const int bucket : {0, 1}) {
    const auto outer = spans(events, bucket, "ALLREDUCE");
    const auto inner = spans(events, bucket, "TCP_ALLREDUCE");
    const auto queued = spans(events, bucket, "QUEUE");
    ASSERT_EQ(outer.size(), 2U);
    ASSERT_EQ(inner.size(), 2U);
    ASSERT_EQ(queued.size(), 2U);
    // Bucket 1 is compressed: converted before and after.
    EXPECT_EQ(spans(events, bucket, "MEMCPY_IN_FUSION_BUFFER").size(), bucket == 0 ? 2U : 4U);
    EXPECT_EQ(spans(events, bucket, "MEMCPY_OUT_FUSION_BUFFER").size(), bucket == 0 ? 0U : 2U);
    for (int step = 0; step < 2; ++step) {
      const auto i = static_cast<std::size_t>(step);
      EXPECT_LE(outer[i].at("ts"), queued[i].at("ts"));
      EXPECT_LE(end_of(queued[i]), inner[i].at("ts").get<double>() + 1e-3);
      EXPECT_LE(end_of(inner[i]), end_of(outer[i]) + 1e-3);
    }
  }
  std::vector<std::string> tracks;
  for (const auto& event : events) {
    if (event.value("name", "") == "thread_name") tracks.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(tracks,
              testing::IsSupersetOf({"bucket 0: first (1 tensor)", "bucket 1: wide (1 tensor)"}));
}

}  // namespace
}  // namespace hvd
