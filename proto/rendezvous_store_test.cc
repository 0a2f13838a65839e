#include "proto/rendezvous_store.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const SteadyTime kStart{seconds(1000)};

v1::StoreRequest put(std::uint64_t id, std::string key, std::string value, std::uint32_t gen = 0) {
  v1::StoreRequest request;
  request.set_id(id);
  request.mutable_put()->set_key(std::move(key));
  request.mutable_put()->set_value(std::move(value));
  request.mutable_put()->set_generation(gen);
  return request;
}

v1::StoreRequest get(std::uint64_t id, std::string key, int timeout_ms, std::uint32_t gen = 0) {
  v1::StoreRequest request;
  request.set_id(id);
  request.mutable_get()->set_key(std::move(key));
  request.mutable_get()->set_timeout_ms(timeout_ms);
  request.mutable_get()->set_generation(gen);
  return request;
}

v1::StoreRequest barrier(std::uint64_t id, std::uint32_t rank, std::uint32_t size,
                         int timeout_ms = 10000) {
  v1::StoreRequest request;
  request.set_id(id);
  request.mutable_barrier()->set_name("start");
  request.mutable_barrier()->set_rank(rank);
  request.mutable_barrier()->set_size(size);
  request.mutable_barrier()->set_timeout_ms(timeout_ms);
  return request;
}

v1::StoreRequest cancel(std::uint64_t id) {
  v1::StoreRequest request;
  request.set_cancel(id);
  return request;
}

v1::StoreStatus status(const StoreAnswers& answers) {
  EXPECT_THAT(answers, SizeIs(1));
  return answers.at(0).reply.status();
}

TEST(RendezvousStore, AGetWaitsForItsPutAndAllWaitersAreServed) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, get(1, "nccl_id", 5000), kStart), IsEmpty());
  EXPECT_THAT(store.handle(1, get(1, "nccl_id", 5000), kStart), IsEmpty());
  EXPECT_THAT(store.handle(1, get(2, "other", 5000), kStart), IsEmpty());
  const StoreAnswers answers = store.handle(0, put(2, "nccl_id", std::string("a\0b", 3)), kStart);
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[0].reply.id(), 2U);
  EXPECT_EQ(answers[1].node, 0U);
  EXPECT_EQ(answers[2].node, 1U);
  EXPECT_EQ(answers[2].reply.id(), 1U);
  EXPECT_EQ(answers[2].reply.value(), std::string("a\0b", 3));
  const StoreAnswers later = store.handle(3, get(9, "nccl_id", 0), kStart);
  EXPECT_EQ(status(later), v1::STORE_STATUS_OK);
  EXPECT_EQ(later[0].reply.value(), std::string("a\0b", 3));
}

TEST(RendezvousStore, TheSameValueAgainIsFineAnotherIsAConflictThatDoesNotShowValues) {
  RendezvousStore store;
  EXPECT_EQ(status(store.handle(0, put(1, "k", "secret1"), kStart)), v1::STORE_STATUS_OK);
  EXPECT_EQ(status(store.handle(1, put(1, "k", "secret1"), kStart)), v1::STORE_STATUS_OK);
  const StoreAnswers answers = store.handle(1, put(2, "k", "secret2"), kStart);
  EXPECT_EQ(status(answers), v1::STORE_STATUS_CONFLICT);
  EXPECT_THAT(answers[0].reply.text(), HasSubstr("'k'"));
  EXPECT_THAT(answers[0].reply.text(), Not(HasSubstr("secret")));
}

TEST(RendezvousStore, AGetTimesOutShortlyBeforeItsCallersDeadline) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, get(1, "k", 10000), kStart), IsEmpty());
  ASSERT_TRUE(store.next_deadline());
  EXPECT_LT(*store.next_deadline(), kStart + seconds(10));
  EXPECT_GT(*store.next_deadline(), kStart + seconds(9));
  EXPECT_THAT(store.expire(kStart + seconds(9)), IsEmpty());
  const StoreAnswers answers = store.expire(kStart + seconds(10));
  EXPECT_EQ(status(answers), v1::STORE_STATUS_TIMEOUT);
  EXPECT_THAT(answers[0].reply.text(), HasSubstr("'k'"));
  EXPECT_FALSE(store.next_deadline());
  EXPECT_EQ(status(store.handle(0, get(2, "k", 0), kStart)), v1::STORE_STATUS_TIMEOUT);
}

TEST(RendezvousStore, ABarrierPassesWhenAllRanksAreThereAndCanBeUsedAgain) {
  RendezvousStore store;
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t rank = 1; rank < 4; ++rank) {
      EXPECT_THAT(store.handle(rank, barrier(round, rank, 4), kStart), IsEmpty());
    }
    const StoreAnswers answers = store.handle(0, barrier(round, 0, 4), kStart);
    EXPECT_THAT(answers, SizeIs(4));
    for (const StoreAnswer& answer : answers) {
      EXPECT_EQ(answer.reply.status(), v1::STORE_STATUS_OK);
    }
    EXPECT_FALSE(store.next_deadline());
  }
}

TEST(RendezvousStore, ABarrierThatTimesOutNamesTheMissingRanksToEveryWaiter) {
  RendezvousStore store;
  for (std::uint32_t rank = 0; rank < 32; ++rank) {
    const int timeout_ms = 10000 + static_cast<int>(rank);
    if (rank != 7) {
      EXPECT_THAT(store.handle(rank / 8, barrier(rank, rank, 32, timeout_ms), kStart), IsEmpty());
    }
  }
  const StoreAnswers first = store.expire(kStart + std::chrono::milliseconds(9505));
  const StoreAnswers last = store.expire(kStart + seconds(11));
  EXPECT_EQ(first.size() + last.size(), 31U);
  EXPECT_THAT(first, Not(IsEmpty()));
  EXPECT_EQ(first[0].reply.text(), "barrier 'start': 31 of 32 ranks came, missing: 7");
  EXPECT_EQ(last.back().reply.text(), "barrier 'start': 31 of 32 ranks came, missing: 7");
}

TEST(RendezvousStore, ABarrierDoesNotPassWithARankThatHasGivenUp) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, barrier(1, 0, 3, 1000), kStart), IsEmpty());
  EXPECT_THAT(store.handle(0, barrier(2, 1, 3, 60000), kStart), IsEmpty());
  EXPECT_EQ(status(store.expire(kStart + seconds(2))), v1::STORE_STATUS_TIMEOUT);
  EXPECT_THAT(store.handle(0, barrier(3, 2, 3, 60000), kStart + seconds(3)), IsEmpty());
  EXPECT_THAT(store.handle(0, barrier(4, 0, 3, 60000), kStart + seconds(4)), SizeIs(3));
}

TEST(RendezvousStore, BarrierRequestsThatContradictEachOtherAreRefused) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, barrier(1, 0, 4), kStart), IsEmpty());
  const StoreAnswers size = store.handle(0, barrier(2, 1, 5), kStart);
  EXPECT_EQ(status(size), v1::STORE_STATUS_CONFLICT);
  EXPECT_EQ(size[0].reply.text(), "barrier 'start': rank 1 expects 5 ranks, others 4");
  EXPECT_EQ(status(store.handle(0, barrier(3, 4, 4), kStart)), v1::STORE_STATUS_CONFLICT);
  EXPECT_EQ(status(store.handle(0, barrier(4, 0, 4), kStart)), v1::STORE_STATUS_CONFLICT);
}

TEST(RendezvousStore, ACancelledRequestIsForgottenAndItsRankMayComeAgain) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, barrier(1, 0, 2), kStart), IsEmpty());
  EXPECT_THAT(store.handle(1, cancel(1), kStart), IsEmpty());  // another node's id
  EXPECT_TRUE(store.next_deadline());
  EXPECT_THAT(store.handle(0, cancel(1), kStart), IsEmpty());
  EXPECT_FALSE(store.next_deadline());
  EXPECT_THAT(store.handle(0, barrier(2, 0, 2), kStart), IsEmpty());
  EXPECT_THAT(store.handle(0, barrier(3, 1, 2), kStart), SizeIs(2));
}

TEST(RendezvousStore, ForgettingANodeDropsItsRequestsOnly) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, get(1, "k", 5000), kStart), IsEmpty());
  EXPECT_THAT(store.handle(1, get(1, "k", 5000), kStart), IsEmpty());
  store.forget_node(0);
  EXPECT_THAT(store.handle(2, put(1, "k", "v"), kStart), SizeIs(2));
}

TEST(RendezvousStore, GenerationsAreKeySpacesAndOlderOnesAreRefused) {
  RendezvousStore store;
  EXPECT_EQ(status(store.handle(0, put(1, "k", "old"), kStart)), v1::STORE_STATUS_OK);
  EXPECT_THAT(store.handle(0, get(2, "late", 5000), kStart), IsEmpty());
  EXPECT_EQ(status(store.handle(0, put(3, "k", "new", 1), kStart)), v1::STORE_STATUS_OK);
  EXPECT_EQ(status(store.advance(1)), v1::STORE_STATUS_CONFLICT);
  const StoreAnswers old = store.handle(0, get(4, "k", 5000), kStart);
  EXPECT_EQ(status(old), v1::STORE_STATUS_CONFLICT);
  EXPECT_EQ(old[0].reply.text(), "key 'k' is of generation 0, the job is at generation 1");
  EXPECT_EQ(store.handle(0, get(5, "k", 0, 1), kStart).at(0).reply.value(), "new");
}

TEST(RendezvousStore, CancelAllEndsEverythingNowAndLater) {
  RendezvousStore store;
  EXPECT_THAT(store.handle(0, get(1, "k", 5000), kStart), IsEmpty());
  EXPECT_THAT(store.handle(1, barrier(1, 0, 2), kStart), IsEmpty());
  EXPECT_THAT(store.cancel_all("rank 2 failed"), SizeIs(2));
  const StoreAnswers later = store.handle(0, put(2, "k", "v"), kStart);
  EXPECT_EQ(status(later), v1::STORE_STATUS_CANCELLED);
  EXPECT_EQ(later[0].reply.text(), "rank 2 failed");
  EXPECT_FALSE(store.next_deadline());
}

TEST(RendezvousStore, LimitsHold) {
  RendezvousStore store;
  const std::string big(RendezvousStore::kMaxValue + 1, 'x');
  EXPECT_EQ(status(store.handle(0, put(1, "k", big), kStart)), v1::STORE_STATUS_TOO_LARGE);
  EXPECT_EQ(status(store.handle(0, put(1, "", "v"), kStart)), v1::STORE_STATUS_TOO_LARGE);
  EXPECT_EQ(status(store.handle(0, put(1, std::string(257, 'k'), "v"), kStart)),
            v1::STORE_STATUS_TOO_LARGE);
  for (std::size_t i = 0; i < RendezvousStore::kMaxKeys; ++i) {
    ASSERT_EQ(status(store.handle(0, put(i, std::to_string(i), "v"), kStart)), v1::STORE_STATUS_OK);
  }
  EXPECT_EQ(status(store.handle(0, put(1, "one more", "v"), kStart)), v1::STORE_STATUS_TOO_LARGE);
  EXPECT_EQ(status(store.handle(0, put(1, "7", "v"), kStart)), v1::STORE_STATUS_OK);
  EXPECT_EQ(status(store.handle(0, v1::StoreRequest(), kStart)), v1::STORE_STATUS_CONFLICT);
}

}  // namespace
}  // namespace hvd
