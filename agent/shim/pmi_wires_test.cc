#include "agent/shim/pmi_wires.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>

namespace hvd {
namespace {

constexpr std::uint32_t kRank = 3;

class PmiWiresTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(poller_.open());
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (const int end : ends) fcntl(end, F_SETFL, O_NONBLOCK);
    rank_.reset(ends[1]);
    wires_.add(kRank, UniqueFd(ends[0]));
  }
  void say(const std::string& bytes) {
    ASSERT_EQ(send(rank_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // What the rank can read now; nullopt at the end of file.
  std::optional<std::string> hear() {
    std::string block(1 << 20, '\0');
    const ssize_t n = recv(rank_.get(), block.data(), block.size(), 0);
    if (n == 0) return std::nullopt;
    return block.substr(0, n < 0 ? 0 : static_cast<std::size_t>(n));
  }
  // Handles what has happened; false: nothing had, within 50 ms.
  bool turn() {
    const auto start = boottime_now();
    poller_.wake_at(start + std::chrono::milliseconds(50));
    poller_.run_once(false);
    return boottime_now() - start < std::chrono::milliseconds(40);
  }

  Poller poller_;
  std::string told_;
  int num_pieces_ = 0;
  PmiWires wires_{poller_, [this](std::uint32_t rank, const std::string& piece) {
                    EXPECT_EQ(rank, kRank);
                    told_ += piece;
                    ++num_pieces_;
                  }};
  UniqueFd rank_;
};

TEST_F(PmiWiresTest, ReadsThePieceAfterTheAnswerOnly) {
  say("one\n");
  turn();
  EXPECT_EQ(told_, "one\n");
  say("two\n");
  EXPECT_FALSE(turn()) << "nothing is read, and nobody is woken";
  EXPECT_EQ(told_, "one\n");
  wires_.answer(kRank, "yes\n", false);
  EXPECT_EQ(hear(), "yes\n");
  turn();
  EXPECT_EQ(told_, "one\ntwo\n");
  wires_.answer(kRank, "", false);
  EXPECT_EQ(hear(), "");
}

TEST_F(PmiWiresTest, AnAnswerToNoQuestionComesThrough) {
  wires_.answer(kRank, "out\n", false);
  EXPECT_EQ(hear(), "out\n");
}

TEST_F(PmiWiresTest, ARankThatDoesNotReadBlocksNobodyAndIsNotReadMeanwhile) {
  const std::string much(1 << 20, 'x');
  wires_.answer(kRank, much, false);
  say("more\n");
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_EQ(told_, "");
  std::size_t num_heard = 0;
  for (int i = 0; i < 1000 && num_heard < much.size(); ++i) {
    num_heard += hear().value_or("").size();
    turn();
  }
  EXPECT_EQ(num_heard, much.size());
  turn();
  EXPECT_EQ(told_, "more\n");
}

TEST_F(PmiWiresTest, ALongMessageComesInBoundedPieces) {
  const std::string much(3 * PmiWires::kMaxPiece, 'x');
  say(much);
  for (int i = 0; i < 3; ++i) {
    turn();
    wires_.answer(kRank, "", false);
  }
  EXPECT_EQ(told_, much);
  EXPECT_EQ(num_pieces_, 3);
}

TEST_F(PmiWiresTest, IsClosedBehindTheLastAnswer) {
  wires_.answer(kRank, "last\n", true);
  EXPECT_EQ(hear(), "last\n");
  EXPECT_EQ(hear(), std::nullopt);
}

TEST_F(PmiWiresTest, TheEndOfARankIsHeardOut) {
  say("one\n");
  turn();
  say("cmd=abort exitcode=3\n");
  wires_.end_rank(kRank);
  EXPECT_EQ(told_, "one\ncmd=abort exitcode=3\n");
  EXPECT_EQ(hear(), std::nullopt) << "whoever still holds the other end reads its end";
  wires_.answer(kRank, "late\n", false);
  wires_.end_rank(kRank);
}

TEST_F(PmiWiresTest, ADescriptorThatIsClosedWakesNobodyTwice) {
  say("one\n");
  turn();
  say("two\n");
  rank_.reset();
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_EQ(told_, "one\ntwo\n");
  EXPECT_FALSE(turn());
}

TEST_F(PmiWiresTest, NobodyIsWokenByARankThatSaysNothing) {
  EXPECT_FALSE(turn());
  rank_.reset();
  turn();
  EXPECT_FALSE(turn());
  EXPECT_EQ(num_pieces_, 0);
}

}  // namespace
}  // namespace hvd
