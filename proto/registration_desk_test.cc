#include "proto/registration_desk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

class RegistrationDeskTest : public testing::Test {
 protected:
  // Rank r runs on node r / 2; its request has the id 100 + r.
  static v1::StoreRegister request(std::uint32_t rank, std::uint32_t size = 4) {
    v1::StoreRegister request;
    request.set_timeout_ms(10000);
    v1::Registration& registration = *request.mutable_registration();
    registration.set_rank(rank);
    registration.set_size(size);
    registration.set_host(rank < 2 ? "node1" : "node2");
    registration.set_pid(static_cast<int>(1000 + rank));
    return request;
  }
  StoreAnswers take(const v1::StoreRegister& request, Nanos at = {}) {
    const std::uint32_t rank = request.registration().rank();
    return desk_.take(rank / 2, 100 + rank, request, start_ + at);
  }
  static void expect_all(const StoreAnswers& answers, std::size_t count, v1::StoreStatus status) {
    EXPECT_EQ(answers.size(), count);
    for (const StoreAnswer& answer : answers) EXPECT_EQ(answer.reply.status(), status);
  }

  const SteadyTime start_ = SteadyTime(seconds(1000));
  RegistrationDesk desk_;
};

TEST_F(RegistrationDeskTest, AllAreAnsweredTogetherWhenTheLastHasCome) {
  for (const std::uint32_t rank : {2u, 0u, 3u}) EXPECT_THAT(take(request(rank)), IsEmpty());
  EXPECT_FALSE(desk_.take_outcome());
  const auto answers = take(request(1));
  expect_all(answers, 4, v1::STORE_STATUS_OK);
  EXPECT_EQ(answers[3].node, 1u);
  EXPECT_EQ(answers[3].reply.id(), 103u);
  const auto outcome = desk_.take_outcome();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->refusal);
  EXPECT_FALSE(desk_.take_outcome()) << "told once";
  EXPECT_FALSE(desk_.next_deadline());
}

TEST_F(RegistrationDeskTest, OneRankAloneIsComplete) {
  expect_all(take(request(0, 1)), 1, v1::STORE_STATUS_OK);
}

TEST_F(RegistrationDeskTest, RanksThatDoNotFitAreAllRefusedWithTheSameLine) {
  auto odd = request(2);
  odd.mutable_registration()->set_nccl_version("2.27.3");
  for (const std::uint32_t rank : {0u, 1u, 3u}) (void)take(request(rank));
  const auto answers = take(odd);
  expect_all(answers, 4, v1::STORE_STATUS_MISMATCH);
  for (const auto& answer : answers) EXPECT_EQ(answer.reply.text(), answers[0].reply.text());
  const auto outcome = desk_.take_outcome();
  ASSERT_TRUE(outcome && outcome->refusal);
  EXPECT_FALSE(outcome->is_timeout);
  EXPECT_EQ(outcome->refusal->headline, answers[0].reply.text());
}

TEST_F(RegistrationDeskTest, WarningsReachEveryRankAndTheOutcome) {
  auto odd = request(2);
  odd.mutable_registration()->set_num_rdma_devices(1);
  for (const std::uint32_t rank : {0u, 1u, 3u}) (void)take(request(rank));
  const auto answers = take(odd);
  expect_all(answers, 4, v1::STORE_STATUS_OK);
  for (const auto& answer : answers) EXPECT_EQ(answer.reply.warnings_size(), 1);
  EXPECT_EQ(desk_.take_outcome()->warnings.size(), 1u);
}

TEST_F(RegistrationDeskTest, ADoubledRankIsRefusedBeforeTheOthersHaveCome) {
  (void)take(request(0));
  (void)take(request(1));
  auto twin = request(1);
  twin.mutable_registration()->set_pid(77);
  const auto answers = desk_.take(0, 200, twin, start_);
  expect_all(answers, 3, v1::STORE_STATUS_MISMATCH);
  EXPECT_EQ(answers.back().reply.id(), 200u);
  EXPECT_THAT(answers.back().reply.text(),
              HasSubstr("rank 1 came twice: pid 1001 on node1 and pid 77"));
  expect_all(take(request(3)), 1, v1::STORE_STATUS_MISMATCH);  // and so is who comes later
}

TEST_F(RegistrationDeskTest, ADoubledRankAfterTheStartDisturbsNobody) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) (void)take(request(rank));
  (void)desk_.take_outcome();
  auto twin = request(1);
  twin.mutable_registration()->set_pid(77);
  expect_all(desk_.take(0, 200, twin, start_), 1, v1::STORE_STATUS_MISMATCH);
  EXPECT_FALSE(desk_.take_outcome());
  expect_all(desk_.take(0, 201, request(1), start_), 1, v1::STORE_STATUS_OK);  // the same process
}

TEST_F(RegistrationDeskTest, AnotherNumberOfRanksIsRefusedAtOnce) {
  (void)take(request(0, 4));
  expect_all(take(request(1, 6)), 2, v1::STORE_STATUS_MISMATCH);
}

TEST_F(RegistrationDeskTest, MissingRanksAreNamedWithTheirHostsAtTheFirstDeadline) {
  desk_.set_hosts({"node1", "node1", "node2", "node2"});
  (void)take(request(0));
  (void)take(request(3), seconds(1));
  EXPECT_THAT(desk_.expire(start_ + seconds(9)), IsEmpty());
  ASSERT_EQ(desk_.next_deadline(), start_ + std::chrono::milliseconds(9500));
  const auto answers = desk_.expire(*desk_.next_deadline());
  expect_all(answers, 2, v1::STORE_STATUS_TIMEOUT);
  EXPECT_EQ(answers[0].reply.text(),
            "only 2 of 4 ranks registered within 10 s, the program's limit for its start "
            "(InitOptions::start_timeout, start_timeout_ms in C); missing: rank 1 (node1), rank 2 "
            "(node2)");
  EXPECT_TRUE(desk_.take_outcome()->is_timeout);
  EXPECT_THAT(desk_.expire(start_ + seconds(60)), IsEmpty());
}

TEST_F(RegistrationDeskTest, MissingRanksAreNamedWithTheirProcesses) {
  desk_.set_hosts({"node1", "node1", "node2", "node2"});
  desk_.set_processes([](std::uint32_t rank) {
    return rank == 2 ? "" : fmt::format("pid {}, stopped (T)", 1000 + rank);
  });
  (void)take(request(0));
  const auto answers = desk_.expire(*desk_.next_deadline());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_THAT(answers[0].reply.text(),
              HasSubstr("missing: rank 1 (node1, pid 1001, stopped (T)), rank 2 (node2), rank 3 "
                        "(node2, pid 1003, stopped (T))"));
}

TEST_F(RegistrationDeskTest, NobodyWaitsForARankThatHasEnded) {
  (void)take(request(0));
  const auto answers = desk_.rank_ended(2, "ended with code 0");
  expect_all(answers, 1, v1::STORE_STATUS_TIMEOUT);
  EXPECT_EQ(answers[0].reply.text(),
            "rank 2 ended with code 0 before it registered; the other ranks of 4 wait for it in "
            "vain");
}

TEST_F(RegistrationDeskTest, ARankThatEndedBeforeAnybodyCameIsTold) {
  EXPECT_THAT(desk_.rank_ended(2, "ended with code 0"), IsEmpty());
  expect_all(take(request(0)), 1, v1::STORE_STATUS_TIMEOUT);
}

TEST_F(RegistrationDeskTest, RanksThatEndAfterTheStartAreNoConcern) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) (void)take(request(rank));
  (void)desk_.take_outcome();
  EXPECT_THAT(desk_.rank_ended(2, "ended with code 0"), IsEmpty());
  EXPECT_FALSE(desk_.take_outcome());
}

TEST_F(RegistrationDeskTest, WhoHasGoneIsMissingAgain) {
  (void)take(request(0));
  (void)take(request(1));
  (void)take(request(2));
  desk_.cancel(0, 101);
  desk_.forget_node(1);
  EXPECT_THAT(take(request(3)), IsEmpty());
  EXPECT_THAT(take(request(1)), IsEmpty());
  expect_all(take(request(2)), 4, v1::STORE_STATUS_OK);
}

TEST_F(RegistrationDeskTest, TheSameProcessMayComeAgain) {
  (void)take(request(0));
  const auto answers = desk_.take(0, 200, request(0), start_);
  expect_all(answers, 1, v1::STORE_STATUS_CONFLICT);
  EXPECT_EQ(answers[0].reply.id(), 100u) << "the older request";
  (void)take(request(1));
  (void)take(request(2));
  expect_all(take(request(3)), 4, v1::STORE_STATUS_OK);
}

TEST_F(RegistrationDeskTest, ANewGenerationBeginsAnewAndAnOldOneIsRefused) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) (void)take(request(rank));
  auto next = request(0, 1);
  next.mutable_registration()->set_generation(1);
  next.mutable_registration()->set_pid(5);
  expect_all(take(next), 1, v1::STORE_STATUS_OK);
  expect_all(take(request(1)), 1, v1::STORE_STATUS_CONFLICT);
}

TEST_F(RegistrationDeskTest, TheEndOfTheJobEndsItForAll) {
  (void)take(request(0));
  expect_all(desk_.cancel_all("the job is ending"), 1, v1::STORE_STATUS_CANCELLED);
  expect_all(take(request(1)), 1, v1::STORE_STATUS_CANCELLED);
  EXPECT_FALSE(desk_.next_deadline());
}

}  // namespace
}  // namespace hvd
