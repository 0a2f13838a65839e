// What every rank is told when one of them fails; the ranks are threads here, processes in
// tests/multiproc.
#include <gmock/gmock.h>

#include <array>
#include <atomic>

#include "tests/support/rank_team.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using test::connect_team;
using test::Team;
using test::with_team;
using testing::HasSubstr;
using testing::MatchesRegex;
using Kind = CommunicatorFailure::Kind;

const Call kLong{std::chrono::seconds(20), nullptr};
constexpr Call within(milliseconds timeout) { return {timeout, nullptr}; }

Result<void> all_reduce(Communicator& communicator, std::size_t count, const Call& call) {
  std::vector<float> data(count, 1);
  return communicator.all_reduce(data.data(), count, DataType::kFloat32, {}, call);
}

TEST(TcpFailure, ARankThatDoesNotComeIsNamedByAllWithinTheLimit) {
  for (const std::size_t count : {8, 400'000}) {
    Team team = connect_team(5);
    std::atomic<int> num_named = 0;
    with_team(team, [&](Communicator& communicator) {
      if (communicator.rank() == 3) return;
      const auto begin = std::chrono::steady_clock::now();
      const auto done = all_reduce(communicator, count, within(milliseconds(400)));
      const auto took = std::chrono::steady_clock::now() - begin;
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ExitCode::kTimeout);
      EXPECT_THAT(done.error().message,
                  HasSubstr("rank 3 on node3 gave no sign of life within 0.4 s"));
      EXPECT_EQ(communicator.failure()->kind, Kind::kDeadline);
      EXPECT_EQ(communicator.failure()->rank, 3);
      EXPECT_LT(took, milliseconds(1000));
      ++num_named;
    });
    EXPECT_EQ(num_named, 4);
    // The late one learns it, too.
    const auto late = all_reduce(*team[3], count, kLong);
    ASSERT_FALSE(late);
    EXPECT_THAT(late.error().message, HasSubstr("rank 3 on node3 gave no sign of life"));
    EXPECT_THAT(late.error().message, MatchesRegex(".* \\(as rank . on node. found\\)"));
  }
}

TEST(TcpFailure, ARankThatIsOnlyLateIsWaitedFor) {
  Team team = connect_team(4);
  std::atomic<int> num_done = 0;
  with_team(team, [&](Communicator& communicator) {
    if (communicator.rank() == 2) {
      while (num_done < 1) std::this_thread::yield();
    } else {
      ++num_done;
    }
    const auto done = all_reduce(communicator, 100'000, kLong);
    EXPECT_TRUE(done) << done.error().message;
  });
}

TEST(TcpFailure, ARankThatGoesIsNamedAtOnceByAll) {
  for (const std::size_t count : {1, 400'000}) {
    Team team = connect_team(4);
    const auto begin = std::chrono::steady_clock::now();
    with_team(team, [&](Communicator& communicator) {
      if (communicator.rank() == 1) {
        team[1].reset();
        return;
      }
      const auto done = all_reduce(communicator, count, kLong);
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message, HasSubstr("rank 1 on node1 has left the communicator"));
      EXPECT_EQ(communicator.failure()->rank, 1);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
}

TEST(TcpFailure, AbortEndsEveryRanksCallWithItsReason) {
  Team team = connect_team(4);
  std::atomic<int> num_ended = 0;
  std::thread aborter;
  with_team(team, [&](Communicator& communicator) {
    if (communicator.rank() == 2) {
      aborter = std::thread([&] { communicator.abort("the loss is not finite"); });
    }
    // Rank 0 stays away, so nobody gets through.
    if (communicator.rank() == 0) return;
    const auto done = all_reduce(communicator, 1000, kLong);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("rank 2 on node2 aborted: the loss is not finite"));
    EXPECT_EQ(communicator.failure()->kind, Kind::kAborted);
    ++num_ended;
  });
  aborter.join();
  EXPECT_EQ(num_ended, 3);
  EXPECT_FALSE(team[0]->barrier(kLong));
}

TEST(TcpFailure, AfterTheFirstFailureEveryCallSaysIt) {
  Team team = connect_team(2);
  team[0]->abort("first");
  team[0]->abort("second");
  float value = 0;
  const auto first = team[0]->broadcast(&value, 1, DataType::kFloat32, 0, kLong);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, "broadcast: rank 0 on node0 aborted: first");
  EXPECT_FALSE(team[0]->all_gather(&value, &value, 0, DataType::kFloat32, kLong));
  EXPECT_FALSE(team[0]->finalize(kLong));
  const auto told = team[1]->barrier(kLong);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message,
            "barrier: rank 0 on node0 aborted: first (as rank 0 on node0 found)");
}

TEST(TcpFailure, DifferentOperationsAreNamedOnAllRanks) {
  Team team = connect_team(2);
  with_team(team, [&](Communicator& communicator) {
    std::array<float, 4> data{};
    const auto done = communicator.rank() == 0
                          ? communicator.broadcast(data.data(), 4, DataType::kFloat32, 0, kLong)
                          : communicator.all_reduce(data.data(), 4, DataType::kFloat32, {}, kLong);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("is in another operation ("));
    EXPECT_THAT(done.error().message, HasSubstr("call 2"));  // the first is of the connecting
    EXPECT_EQ(communicator.failure()->kind, Kind::kMismatch);
    EXPECT_FALSE(communicator.barrier(kLong));
  });
}

TEST(TcpFailure, DifferentRootsOfABroadcastFailTheFirstCallOfAllRanks) {
  for (const int size : {2, 3, 5, 8}) {
    for (const int dissenter : {0, 1, size - 1}) {
      Team team = connect_team(size);
      with_team(team, [&](Communicator& communicator) {
        std::array<float, 4> data{};
        const int root = communicator.rank() == dissenter ? 1 : 0;
        const auto done = communicator.broadcast(data.data(), 4, DataType::kFloat32, root, kLong);
        ASSERT_FALSE(done) << "rank " << communicator.rank() << " of " << size;
        EXPECT_THAT(done.error().message, HasSubstr("broadcast from rank 0 of 4 float32, call 2"));
        EXPECT_THAT(done.error().message, HasSubstr("broadcast from rank 1 of 4 float32, call 2"));
        EXPECT_EQ(communicator.failure()->kind, Kind::kMismatch);
      });
    }
  }
}

TEST(TcpFailure, AnUndefinedReductionHarmsNobody) {
  Team team = connect_team(2);
  with_team(team, [&](Communicator& communicator) {
    int value = 1;
    EXPECT_FALSE(communicator.all_reduce(&value, 1, DataType::kInt32, {ReduceOp::kSum, 2}, kLong));
    EXPECT_FALSE(communicator.broadcast(&value, 1, DataType::kInt32, 2, kLong));
    EXPECT_TRUE(communicator.all_reduce(&value, 1, DataType::kInt32, {}, kLong));
    EXPECT_EQ(value, 2);
  });
}

TEST(TcpFailure, AFailedTeamLeavesNoDescriptor) {
  const int fds = test::count_own("fd");
  {
    Team team = connect_team(4);
    with_team(team, [&](Communicator& communicator) {
      if (communicator.rank() != 0) {
        EXPECT_FALSE(communicator.barrier(within(milliseconds(100))));
      }
    });
  }
  EXPECT_EQ(test::count_own("fd"), fds);
}

}  // namespace
}  // namespace hvd
