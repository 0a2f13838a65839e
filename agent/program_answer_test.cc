// Questions to programs of the node, with stand-ins for them in a folder of their own. The test
// program is the guard of its programs (outside_program_test.cc).
#include "agent/program_answer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "agent/users.h"

namespace hvd {
namespace {

using testing::HasSubstr;

class ProgramAnswerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // What stands for the program of this name.
  void put(const std::string& name, const std::string& shell_text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << shell_text << "\n";
    chmod(path.c_str(), 0755);
  }
  EnvList env() const { return {{"PATH", folder_ + ":/usr/bin:/bin"}, {"GREETING", "hello"}}; }

  template <typename Value>
  Value value_of(Task<Value> task) {
    std::optional<Value> value;
    boost::asio::co_spawn(*loop_, std::move(task),
                          [&value](const std::exception_ptr&, Value it) { value = std::move(it); });
    loop_->restart();
    loop_->run_for(std::chrono::seconds(20));
    return value.value();
  }
  ProgramAnswer answer(Nanos limit = std::chrono::seconds(10)) {
    return value_of(ask_program(*loop_, {{"asked", "a b"}, env(), limit}));
  }

  std::string folder_ = "/tmp/hvd-answer-XXXXXX";
  std::unique_ptr<Loop> loop_ = std::make_unique<Loop>();
};

TEST_F(ProgramAnswerTest, TellsWhatTheProgramPrintsAndHowItEnds) {
  put("asked", "echo $GREETING \"$1\"; echo more >&2");
  EXPECT_EQ(answer().output, "hello a b\nmore\n");
  EXPECT_EQ(answer().problem, "");
  put("asked", "echo half; exit 3");
  EXPECT_EQ(answer().output, "half\n");
  EXPECT_EQ(answer().problem, "ended with code 3");
  EXPECT_FALSE(answer().is_late);
  put("asked", "head -c 1000000 /dev/zero");
  EXPECT_EQ(answer().output.size(), kMaxAnswer);
}

TEST_F(ProgramAnswerTest, OneThatIsNotThereSaysSo) {
  EXPECT_THAT(answer().problem, HasSubstr("cannot be executed: No such file"));
}

TEST_F(ProgramAnswerTest, OneThatHangsIsEndedAtTheLimit) {
  put("asked", "trap '' TERM; echo $$; while :; do sleep 1; done");
  const auto said = answer(std::chrono::milliseconds(300));
  EXPECT_TRUE(said.is_late);
  EXPECT_EQ(said.problem, "did not end within 0.3 s");
  const pid_t pid = atoi(said.output.c_str());
  ASSERT_GT(pid, 0);
  for (int i = 0; i < 300 && kill(pid, 0) == 0; ++i) usleep(10000);
  EXPECT_NE(kill(pid, 0), 0);
}

int num_descriptors() {
  int num = 0;
  for ([[maybe_unused]] const auto& it : std::filesystem::directory_iterator("/proc/self/fd"))
    ++num;
  return num;
}

TEST_F(ProgramAnswerTest, TheLoopMayGoWithAQuestionOpen) {
  put("asked", "exec sleep 100");
  const int before = num_descriptors();
  boost::asio::co_spawn(*loop_, ask_program(*loop_, {{"asked"}, env(), std::chrono::seconds(60)}),
                        boost::asio::detached);
  loop_->run_for(std::chrono::milliseconds(100));
  EXPECT_GT(num_descriptors(), before) << "it runs";
  loop_ = std::make_unique<Loop>();
  EXPECT_LE(num_descriptors(), before);
}

TEST_F(ProgramAnswerTest, UsersAreAskedOfGetent) {
  put("getent", "test \"$1 $2\" = 'passwd alice' && echo 'alice:x:1000:1000::/home/alice:/bin/sh'");
  const auto alice = value_of(find_user(*loop_, env(), "alice"));
  ASSERT_TRUE(alice) << alice.error().message;
  EXPECT_EQ(alice->home, "/home/alice");
  const auto message = [this](const std::string& name) {
    const auto user = value_of(find_user(*loop_, env(), name));
    return user ? "none" : user.error().message;
  };
  EXPECT_EQ(message("bob"), "user bob: getent passwd ended with code 1: nothing");
  EXPECT_EQ(message("-s"), "'-s' is no name of a user");
  put("getent", "exit 2");
  EXPECT_EQ(message("bob"), "this node has no user bob (getent passwd bob)");
}

TEST_F(ProgramAnswerTest, TheNodesOwnGetentKnowsRoot) {
  const auto root = value_of(find_user(*loop_, env(), "root"));
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->uid, 0U);
  const auto none = value_of(find_user(*loop_, env(), "no-such-user-here"));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("this node has no user no-such-user-here"));
}

TEST_F(ProgramAnswerTest, ADirectoryThatDoesNotAnswerIsNamed) {
  put("getent", "exec sleep 100");
  const auto user = value_of(find_user(*loop_, env(), "alice"));
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().message,
            "user alice: getent passwd did not end within 5 s: the node's directory service (LDAP, "
            "SSSD) does not answer");
}

}  // namespace
}  // namespace hvd
