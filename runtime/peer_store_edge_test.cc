#include "runtime/peer_store_edge.h"

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "runtime/rendezvous_link.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr milliseconds kAmple = seconds(20);
constexpr const char* kJob = "torchrun run a, 2 ranks";

hvdrun::v1::Registration rank_of(int rank, int size, const std::string& plan) {
  hvdrun::v1::Registration registration;
  registration.set_rank(static_cast<std::uint32_t>(rank));
  registration.set_size(static_cast<std::uint32_t>(size));
  registration.set_host("node1");
  registration.set_pid(1000 + rank);
  registration.set_plan(plan);
  registration.set_plan_hash(plan.size());
  return registration;
}

class PeerStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = PeerStoreEdge::start("127.0.0.1", 0, kJob);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  RendezvousLink link(const char* job = kJob) const {
    return RendezvousLink::open_tcp("127.0.0.1", server_->port(), job);
  }

  std::unique_ptr<PeerStoreEdge> server_;
};

TEST_F(PeerStoreTest, AGetWaitsForItsKey) {
  RendezvousLink getter = link();
  auto value = std::async(std::launch::async, [&] { return getter.get("key", 0, kAmple); });
  RendezvousLink putter = link();
  ASSERT_TRUE(putter.put("key", std::string("\0id", 3), 0, kAmple));
  EXPECT_EQ(value.get(), std::string("\0id", 3));
  EXPECT_FALSE(putter.put("key", "another", 0, kAmple));
}

TEST_F(PeerStoreTest, AGetThatWaitsInVainEndsAtItsLimit) {
  const auto value = link().get("never", 0, milliseconds(300));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ExitCode::kTimeout);
  EXPECT_THAT(value.error().message, HasSubstr(fmt::format("tcp://127.0.0.1:{}", server_->port())));
}

TEST_F(PeerStoreTest, ABarrierNamesWhoIsMissing) {
  const auto passed = link().barrier("start", 0, 0, 3, milliseconds(500));
  ASSERT_FALSE(passed);
  EXPECT_THAT(passed.error().message, HasSubstr("missing: 1, 2"));
}

TEST_F(PeerStoreTest, RanksThatFitAreLetIn) {
  RendezvousLink one = link();
  RendezvousLink two = link();
  auto first = std::async(std::launch::async,
                          [&] { return one.register_worker(rank_of(0, 2, "a plan"), kAmple); });
  const auto second = two.register_worker(rank_of(1, 2, "a plan"), kAmple);
  EXPECT_TRUE(second) << second.error().message;
  EXPECT_TRUE(first.get());
}

TEST_F(PeerStoreTest, RanksThatDoNotFitAreAllRefusedWithTheSameReason) {
  RendezvousLink one = link();
  RendezvousLink two = link();
  auto first = std::async(std::launch::async,
                          [&] { return one.register_worker(rank_of(0, 2, "a plan"), kAmple); });
  const auto second = two.register_worker(rank_of(1, 2, "another plan"), kAmple);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
  const auto refused = first.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
}

TEST_F(PeerStoreTest, RanksWaitForAServerThatComesLater) {
  const int port = server_->port();
  server_.reset();
  RendezvousLink early = RendezvousLink::open_tcp("127.0.0.1", port, kJob);
  auto put = std::async(std::launch::async, [&] { return early.put("key", "v", 0, kAmple); });
  std::this_thread::sleep_for(milliseconds(100));
  auto started = PeerStoreEdge::start("127.0.0.1", port, kJob);
  ASSERT_TRUE(started) << started.error().message;
  const auto done = put.get();
  EXPECT_TRUE(done) << done.error().message;
}

TEST_F(PeerStoreTest, APortOfAnotherJobIsRefused) {
  const auto second = PeerStoreEdge::start("127.0.0.1", server_->port(), kJob);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::kUsage);
  EXPECT_THAT(second.error().message, HasSubstr("HVDRUN_INIT=tcp://127.0.0.1:PORT"));
}

TEST_F(PeerStoreTest, ARankOfAnotherJobIsRefusedAndDisturbsNobody) {
  RendezvousLink one = link();
  RendezvousLink two = link();
  auto first = std::async(std::launch::async,
                          [&] { return one.register_worker(rank_of(0, 2, "a plan"), kAmple); });
  RendezvousLink stranger = link("torchrun run b, 3 ranks");
  const auto refused = stranger.register_worker(rank_of(1, 3, "another"), kAmple);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
  EXPECT_THAT(refused.error().message,
              HasSubstr("another job (torchrun run a, 2 ranks) meets there than this rank's "
                        "(torchrun run b, 3 ranks)"));
  EXPECT_FALSE(stranger.put("key", "value", 0, kAmple));
  EXPECT_FALSE(stranger.get("key", 0, kAmple));
  EXPECT_FALSE(stranger.barrier("start", 0, 1, 3, kAmple));
  const auto second = two.register_worker(rank_of(1, 2, "a plan"), kAmple);
  EXPECT_TRUE(second) << second.error().message;
  EXPECT_TRUE(first.get());
}

TEST_F(PeerStoreTest, WhereNobodyListensThatIsSaid) {
  const int port = server_->port();
  server_.reset();
  const auto value =
      RendezvousLink::open_tcp("127.0.0.1", port, kJob).get("key", 0, milliseconds(300));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ExitCode::kTimeout);
  EXPECT_THAT(value.error().message,
              HasSubstr(fmt::format("nobody listens at 127.0.0.1:{} (rank 0 would)", port)));
}

TEST_F(PeerStoreTest, TheEndOfTheServerEndsOpenCalls) {
  RendezvousLink getter = link();
  auto value = std::async(std::launch::async, [&] { return getter.get("key", 0, kAmple); });
  std::this_thread::sleep_for(milliseconds(200));
  server_.reset();
  EXPECT_FALSE(value.get());
}

}  // namespace
}  // namespace hvd
