#include "agent/cgroup_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/shim/job_cgroup.h"
#include "base/clock.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ScopeCommand, AsksForADelegatedScopeOfThatName) {
  EXPECT_THAT(scope_command("hvd-j-n2", {"/a/hvd-agent", "--stdio"}),
              ElementsAre("systemd-run", "--user", "--scope", "-q", "-p", "Delegate=yes",
                          "--unit=hvd-j-n2", "--", "/a/hvd-agent", "--stdio"));
}

TEST(WithoutUserScope, LeavesTheOtherWords) {
  EXPECT_THAT(without_user_scope({"a", "--stdio", "--user-scope", "--node", "1"}),
              ElementsAre("a", "--stdio", "--node", "1"));
}

TEST(FindCgroupPlace, TakesTheFolderThatItIsTold) {
  AgentArguments arguments;
  arguments.cgroup_root = "/some/where";
  EXPECT_EQ(find_cgroup_place(arguments, {}).parent, "/some/where");
  arguments.cgroup_root = "none";
  const CgroupPlace none = find_cgroup_place(arguments, {});
  EXPECT_EQ(none.parent, "");
  EXPECT_EQ(none.problem, "switched off");
}

// What an ordinary user without a writable cgroup gets, in a child: it may be replaced by another
// program. A systemd-run of our own stands on the PATH.
class UserScope : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    if (!own_cgroup()) GTEST_SKIP() << "no cgroup v2 here";
    char name[] = "/tmp/hvdrun-scope-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    chmod(name, 0755);
    fs::create_directory(root_ / "systemd");
    std::ofstream(root_ / "systemd/private") << "";
    arguments_.job_id = "0123456789abcdef0123456789abcdef";
    arguments_.node = 2;
    arguments_.wants_user_scope = true;
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  void systemd_run(const std::string& script) {
    std::ofstream(root_ / "systemd-run") << "#!/bin/sh\n" << script << "\n";
    fs::permissions(root_ / "systemd-run", fs::perms(0755));
  }

  // The problem that it comes back with; what its replacement printed, if it does not.
  std::string place_of_user() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(ends[1], STDOUT_FILENO);
      setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
      setenv("PATH", (root_.string() + ":/usr/bin:/bin").c_str(), 1);
      if (setgid(65534) != 0 || setuid(65534) != 0) _exit(96);
      const CgroupPlace place =
          find_cgroup_place(arguments_, {"hvd-agent", "--stdio", "--user-scope", "--marker", "M"});
      const std::string text = "came back: " + place.problem;
      _exit(write(STDOUT_FILENO, text.data(), text.size()) > 0 ? 0 : 97);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
    close(ends[0]);
    waitpid(pid, nullptr, 0);
    return text;
  }

  fs::path root_;
  AgentArguments arguments_;
};

TEST_F(UserScope, BecomesItselfInsideTheScope) {
  systemd_run("case \"$*\" in *scope-check) exit 0;; *) echo \"$@\";; esac");
  const std::string text = place_of_user();
  EXPECT_THAT(text, HasSubstr("--unit=hvd-0123456789abcdef0123456789abcdef-n2 -- /"));
  EXPECT_THAT(text, HasSubstr("--stdio --marker M"));
  EXPECT_THAT(text, testing::Not(HasSubstr("--user-scope")));
}

TEST_F(UserScope, StaysAsItIsWhenThereIsNoScope) {
  systemd_run("exit 1");
  EXPECT_THAT(place_of_user(), HasSubstr("came back: "));
  EXPECT_THAT(place_of_user(), HasSubstr("systemd-run gave no scope"));
  fs::remove(root_ / "systemd/private");
  EXPECT_THAT(place_of_user(), HasSubstr("no systemd of the user"));
}

TEST_F(UserScope, DoesNotWaitForASystemdThatHangs) {
  systemd_run("exec sleep 60");
  const Nanos start = boottime_now();
  EXPECT_THAT(place_of_user(), HasSubstr("has not answered"));
  EXPECT_LT(boottime_now() - start, std::chrono::seconds(4));
}

}  // namespace
}  // namespace hvd
