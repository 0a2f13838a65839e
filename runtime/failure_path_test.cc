#include "runtime/failure_path.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "runtime/worker_exit.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Only its abort() is looked at: it tells the reason, and may hang until it is let go.
class AbortableCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Result<void> all_reduce(void*, std::size_t, DataType, const Reduction&, const Call&) override {
    return {};
  }
  Result<void> broadcast(void*, std::size_t, DataType, int, const Call&) override { return {}; }
  Result<void> all_gather(const void*, void*, std::size_t, DataType, const Call&) override {
    return {};
  }
  Result<void> reduce_scatter(const void*, void*, std::size_t, DataType, const Reduction&,
                              const Call&) override {
    return {};
  }
  Result<void> barrier(const Call&) override { return {}; }
  Result<void> finalize(const Call&) override { return {}; }
  std::optional<CommunicatorFailure> failure() const override { return std::nullopt; }
  void abort(std::string_view reason) override {
    reason_ = reason;
    is_aborted_.set_value();
    if (let_go_.valid()) let_go_.wait();
  }

  std::future<void> let_go_;
  std::promise<void> is_aborted_;
  std::string reason_;
};

Error lost_peer() { return worker_error(WorkerExit::kPeerLost, "rank 1 on node1 is lost").value(); }

class FailurePathTest : public testing::Test {
 protected:
  FailurePath::Settings settings(milliseconds limit = std::chrono::seconds(20)) {
    FailurePath::Settings settings;
    settings.who = "rank 0 on node0";
    settings.limit = limit;
    settings.record = [this](const Error& cause) { recorded_.push_back(cause.message); };
    settings.leave = [this](int code) { code_.set_value(code); };
    return settings;
  }
  int code_within(milliseconds limit) {
    auto code = code_.get_future();
    return code.wait_for(limit) == std::future_status::ready ? code.get() : -1;
  }

  std::vector<std::string> recorded_;
  std::promise<int> code_;
};

TEST_F(FailurePathTest, TheFirstCauseDecidesTheCodeAndIsRecordedOnce) {
  AbortableCommunicator communicator;
  FailurePath path(settings());
  path.add(&communicator);
  path.report(lost_peer());
  path.report(worker_error(WorkerExit::kDeadline, "later").value());
  EXPECT_TRUE(path.is_failing());
  EXPECT_EQ(code_within(std::chrono::seconds(10)), 71);
  EXPECT_EQ(communicator.reason_, "rank 1 on node1 is lost");
  EXPECT_THAT(recorded_, testing::ElementsAre("rank 1 on node1 is lost"));
}

TEST_F(FailurePathTest, AllCommunicatorsAreAbortedThoughOneHangs) {
  AbortableCommunicator hanging;
  AbortableCommunicator other;
  std::promise<void> release;
  hanging.let_go_ = release.get_future();
  FailurePath path(settings());
  path.add(&hanging);
  path.add(&other);
  path.report(lost_peer());
  EXPECT_EQ(other.is_aborted_.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  release.set_value();
  EXPECT_EQ(code_within(std::chrono::seconds(10)), 71);
}

TEST_F(FailurePathTest, AnAbortThatHangsEndsAtTheLimitWithItsOwnCode) {
  AbortableCommunicator hanging;
  std::promise<void> release;
  hanging.let_go_ = release.get_future();
  FailurePath path(settings(milliseconds(200)));
  path.add(&hanging);
  const auto begin = steady_clock::now();
  path.report(lost_peer());
  EXPECT_EQ(code_within(std::chrono::seconds(10)), 76);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(200));
  release.set_value();  // too late: the code stays (a second one would throw)
}

TEST_F(FailurePathTest, WhatIsRemovedIsNotAborted) {
  AbortableCommunicator gone;
  FailurePath path(settings());
  path.add(&gone);
  path.remove(&gone);
  path.report(lost_peer());
  EXPECT_EQ(code_within(std::chrono::seconds(10)), 71);
  EXPECT_EQ(gone.reason_, "");
}

TEST_F(FailurePathTest, AnArmedCauseComesAtItsTime) {
  FailurePath path(settings());
  path.arm(steady_clock::now() + milliseconds(100),
           worker_error(WorkerExit::kDeadline, "the start took too long").value());
  EXPECT_EQ(code_within(std::chrono::seconds(10)), 72);
}

TEST_F(FailurePathTest, ADisarmedCauseDoesNotCome) {
  FailurePath path(settings());
  path.arm(steady_clock::now() + milliseconds(100), lost_peer());
  path.disarm();
  EXPECT_EQ(code_within(milliseconds(300)), -1);
  EXPECT_FALSE(path.is_failing());
}

TEST_F(FailurePathTest, EndsQuietlyWhereNothingFailed) {
  { const FailurePath path(settings()); }
  EXPECT_EQ(code_within(milliseconds(0)), -1);
  EXPECT_TRUE(recorded_.empty());
}

}  // namespace
}  // namespace hvd
