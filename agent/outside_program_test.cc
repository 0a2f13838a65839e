// Programs beside the job and what is collected by them. This test is its own guard: see main().
#include "agent/outside_program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "agent/evidence_collector.h"
#include "agent/guard.h"
#include "agent/kernel_view.h"
#include "agent/shim/proc.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const EnvList kEnv = {{"PATH", "/usr/bin:/bin"}, {"GREETING", "hello"}};
constexpr auto kLimit = seconds(10);

// Leaves its session, clears its environment and loses its parent; it says its number.
const std::string kEscape = "env -i setsid -f sh -c 'echo $$; exec sleep 100'; ";

bool has_gone(pid_t pid) {
  const auto process = read_stat(pid);
  return !process || !is_alive(*process);
}

bool goes(pid_t pid) {
  for (int i = 0; i < 300 && !has_gone(pid); ++i) usleep(10000);
  return has_gone(pid);
}

class OutsideProgramTest : public testing::Test {
 protected:
  // Runs the shell text until it ends or something stops the loop.
  void run(const std::string& text, std::chrono::milliseconds limit = kLimit) {
    auto program = OutsideProgram::start(loop_, {"/bin/sh", {"sh", "-c", text}, kEnv, "/tmp"},
                                         {[this](std::string_view bytes) { said_ += bytes; },
                                          [this](const std::string& how) {
                                            ended_ = how;
                                            loop_.stop();
                                          }});
    ASSERT_TRUE(program) << program.error().message;
    program_ = std::move(*program);
    loop_.run_for(limit);
  }

  Loop loop_;
  std::unique_ptr<OutsideProgram> program_;
  std::string said_;
  std::string ended_;
};

TEST_F(OutsideProgramTest, ItsWholeOutputComesBeforeItsEnd) {
  run("echo $GREETING; pwd >&2; exit 3");
  EXPECT_EQ(said_, "hello\n/tmp\n");
  EXPECT_EQ(ended_, "ended with code 3");
}

TEST_F(OutsideProgramTest, MuchOutputComesWhole) {
  run("seq 200000");
  EXPECT_EQ(ended_, kEndedWell);
  EXPECT_EQ(said_.size(), 1288895u);
}

TEST_F(OutsideProgramTest, ASignalIsNamedAndAChildThatHoldsThePipeIsNotWaitedFor) {
  run("sleep 100 & kill -9 $$");
  EXPECT_EQ(ended_, "was killed by signal 9");
}

TEST_F(OutsideProgramTest, GoesWithItsOwnerAndWithItsChildren) {
  run("sleep 100 & echo $! $$; wait", milliseconds(300));
  int child = 0;
  int parent = 0;
  ASSERT_EQ(sscanf(said_.c_str(), "%d %d", &child, &parent), 2) << said_;
  program_.reset();
  loop_.restart();
  loop_.run_for(milliseconds(300));
  EXPECT_TRUE(goes(parent));
  EXPECT_TRUE(goes(child));
  EXPECT_EQ(ended_, "");
}

TEST_F(OutsideProgramTest, WhatItLeavesBehindGoesWhenItEnds) {
  run(kEscape + "sleep 0.3; exit 5");
  EXPECT_EQ(ended_, "ended with code 5");
  ASSERT_GT(atoi(said_.c_str()), 0) << said_;
  EXPECT_TRUE(has_gone(atoi(said_.c_str()))) << "it had gone when the end was told";
}

TEST_F(OutsideProgramTest, WhatHasLeftItGoesWithItToo) {
  run(kEscape + "sleep 100", milliseconds(300));
  const pid_t escaped = atoi(said_.c_str());
  ASSERT_GT(escaped, 0) << said_;
  EXPECT_FALSE(has_gone(escaped));
  program_.reset();
  EXPECT_TRUE(goes(escaped));
}

TEST_F(OutsideProgramTest, AStoppedGuardDoesNotKeepIt) {
  run(kEscape + "kill -STOP $PPID; sleep 100", milliseconds(300));
  const pid_t escaped = atoi(said_.c_str());
  ASSERT_GT(escaped, 0) << said_;
  program_.reset();
  EXPECT_TRUE(goes(escaped));
}

TEST_F(OutsideProgramTest, AGuardThatWasKilledLeavesNothingAndStrangersStay) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // as the agent is
  const pid_t stranger = fork();
  if (stranger == 0) {
    while (true) pause();
  }
  usleep(20000);  // two ticks of the clock that tells how old a process is
  run(kEscape + "sleep 0.2; kill -9 $PPID; sleep 100");
  EXPECT_EQ(ended_, "was killed by signal 9");
  const pid_t escaped = atoi(said_.c_str());
  ASSERT_GT(escaped, 0) << said_;
  loop_.restart();
  loop_.run_for(milliseconds(500));
  EXPECT_TRUE(has_gone(escaped));
  EXPECT_FALSE(has_gone(stranger));
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(OutsideProgramTest, ItsOwnGroupIsNotItsGuards) {
  run("trap '' TERM; kill -TERM 0; exit 6");
  EXPECT_EQ(ended_, "ended with code 6");
}

TEST_F(OutsideProgramTest, DiesWithTheProgramThatStartedIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    std::string said;
    Loop loop;
    auto program = OutsideProgram::start(
        loop, {"/bin/sh", {"sh", "-c", kEscape + "sleep 0.2; echo $$; exec sleep 100"}, kEnv, ""},
        {[&](std::string_view bytes) { (void)!write(ends[1], bytes.data(), bytes.size()); },
         [](const std::string&) {}});
    loop.run_for(kLimit);
    _exit(1);
  }
  std::string said;
  char byte = 0;
  const auto has_both = [&said] { return std::count(said.begin(), said.end(), '\n') == 2; };
  while (!has_both() && read(ends[0], &byte, 1) == 1) said += byte;
  int escaped = 0;
  int program = 0;
  ASSERT_EQ(sscanf(said.c_str(), "%d %d", &escaped, &program), 2) << said;
  EXPECT_FALSE(has_gone(program));
  EXPECT_FALSE(has_gone(escaped));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(goes(program));
  EXPECT_TRUE(goes(escaped));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(OutsideProgramTest, AProgramThatIsNotThereSaysSo) {
  auto program = OutsideProgram::start(loop_, {"/none/such", {"such"}, kEnv, ""},
                                       {[this](std::string_view bytes) { said_ += bytes; },
                                        [this](const std::string& how) {
                                          ended_ = how;
                                          loop_.stop();
                                        }});
  ASSERT_TRUE(program);
  loop_.run_for(kLimit);
  EXPECT_THAT(said_, HasSubstr("/none/such: No such file or directory"));
  EXPECT_EQ(ended_, "ended with code 126");
}

class EvidenceTest : public testing::Test {
 protected:
  v1::CollectEvidence request(const std::vector<std::string>& words, std::uint32_t count) {
    v1::CollectEvidence request;
    request.set_limit_ms(1000);
    request.set_total_ms(8000);
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      auto* target = request.add_targets();
      target->set_rank(rank);
      for (const std::string& word : words) target->add_words(word);
    }
    return request;
  }
  void collect(const v1::CollectEvidence& request) {
    EvidenceCollector collector(loop_, request, {kEnv, "/tmp"});
    collector_ = &collector;
    collector.start([](std::uint32_t rank) { return rank == 9 ? 0 : getpid(); },
                    [this](v1::RankEvidence rank) { ranks_.push_back(std::move(rank)); },
                    [this] {
                      is_done_ = true;
                      loop_.stop();
                    });
    loop_.run_for(kLimit);
  }

  Loop loop_;
  EvidenceCollector* collector_ = nullptr;
  std::vector<v1::RankEvidence> ranks_;
  bool is_done_ = false;
};

TEST(EvidenceWords, HoldThePid) {
  v1::CollectEvidence::Target target;
  for (const char* word : {"dump", "--pid={pid}", "{pid}{pid}", "{rank}"}) target.add_words(word);
  EXPECT_THAT(words_for_pid(target, 42),
              testing::ElementsAre("dump", "--pid=42", "4242", "{rank}"));
}

TEST_F(EvidenceTest, EveryRankThatRunsHasItsProgram) {
  collect(request({"sh", "-c", "echo of {pid}; exit $(({pid} % 1))"}, 12));
  EXPECT_TRUE(is_done_);
  ASSERT_EQ(ranks_.size(), 11u) << "rank 9 has ended";
  for (const auto& rank : ranks_) {
    EXPECT_EQ(rank.text(), fmt::format("of {}\n", getpid()));
    EXPECT_EQ(rank.problem(), "");
    EXPECT_EQ(rank.pid(), getpid());
    EXPECT_THAT(rank.state(), testing::AnyOf("R", "S"));
  }
}

TEST_F(EvidenceTest, OneThatHangsIsEndedAtItsLimitWithWhatItSaid) {
  const Nanos before = monotonic_now();
  collect(request({"sh", "-c", "echo first; sleep 100"}, 3));
  EXPECT_LT(monotonic_now() - before, seconds(4));
  ASSERT_EQ(ranks_.size(), 3u);
  for (const auto& rank : ranks_) {
    EXPECT_EQ(rank.text(), "first\n");
    EXPECT_EQ(rank.problem(), "did not end within 1 s");
  }
}

TEST_F(EvidenceTest, WhenTheTimeForAllIsUpTheRestIsToldWithoutAny) {
  auto all = request({"sleep", "100"}, 20);
  all.set_total_ms(500);
  collect(all);
  EXPECT_TRUE(is_done_);
  ASSERT_EQ(ranks_.size(), 19u);
  EXPECT_THAT(ranks_.back().problem(), StartsWith("had no time within"));
}

TEST_F(EvidenceTest, AMissingProgramAndAFailureAreNamed) {
  collect(request({"no-such-program"}, 2));
  ASSERT_EQ(ranks_.size(), 2u);
  EXPECT_EQ(ranks_[0].problem(), "could not be executed: No such file or directory");
  ranks_.clear();
  loop_.restart();
  collect(request({"sh", "-c", "exit 4"}, 1));
  ASSERT_EQ(ranks_.size(), 1u);
  EXPECT_EQ(ranks_[0].problem(), "ended with code 4");
}

TEST_F(EvidenceTest, OutputIsBoundedAndTheRestCounted) {
  collect(request({"head", "-c", "100000", "/dev/zero"}, 1));
  ASSERT_EQ(ranks_.size(), 1u);
  EXPECT_EQ(ranks_[0].text().size(), EvidenceCollector::kMaxBytes);
  EXPECT_EQ(ranks_[0].num_left_out(), 100000 - EvidenceCollector::kMaxBytes);
}

TEST_F(EvidenceTest, WithoutWordsTheKernelIsAsked) {
  collect(request({}, 1));
  ASSERT_EQ(ranks_.size(), 1u);
  EXPECT_THAT(ranks_[0].text(),
              AllOf(HasSubstr(fmt::format("(pid {})", getpid())), HasSubstr("thread")));
}

TEST_F(EvidenceTest, CanBeEndedFromOutside) {
  boost::asio::steady_timer timer(loop_, milliseconds(200));
  timer.async_wait([this](const boost::system::error_code&) { collector_->end("the job ends"); });
  collect(request({"sh", "-c", "echo so far; sleep 100"}, 1));
  EXPECT_TRUE(is_done_);
  ASSERT_EQ(ranks_.size(), 1u);
  EXPECT_EQ(ranks_[0].text(), "so far\n");
  EXPECT_EQ(ranks_[0].problem(), "the job ends");
}

}  // namespace
}  // namespace hvd

// The program under test runs itself in these modes.
int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "guard") return hvd::run_guard(argc, argv);
  if (mode == "stacks") return fputs(hvd::describe_rank(atoi(argv[2])).c_str(), stdout) < 0;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
