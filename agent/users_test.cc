#include "agent/users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::HasSubstr;

TEST(UserName, IsNoOptionNoNumberAndNoRecord) {
  for (const char* name :
       {"alice", "a", "Alice.B-c_1", "LAB\\alice", "alice@lab.org", "svc$", "7up", "zo\u00eb"}) {
    EXPECT_TRUE(is_user_name(name)) << name;
  }
  for (const char* name : {"", "-s", "1000", "a b", "a:b", "a/b", "a,b", "a\nb", "a\tb", "\xff"}) {
    EXPECT_FALSE(is_user_name(name)) << name;
  }
  EXPECT_TRUE(is_user_name(std::string(256, 'a')));
  EXPECT_FALSE(is_user_name(std::string(257, 'a')));
}

TEST(Passwd, IsReadFieldByField) {
  const auto user = parse_passwd("alice:x:1000:1001:Alice,,,:/home/alice:/bin/bash\n", "alice");
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "alice");
  EXPECT_EQ(user->uid, 1000U);
  EXPECT_EQ(user->gid, 1001U);
  EXPECT_EQ(user->home, "/home/alice");
  EXPECT_EQ(user->shell, "/bin/bash");
  const auto without_shell = parse_passwd("a warning\nb:*:0:0::/:", "b");
  ASSERT_TRUE(without_shell);
  EXPECT_EQ(without_shell->shell, "/bin/sh");
}

TEST(Passwd, WhatIsNoUserOfThisNameIsAnError) {
  const auto message = [](std::string_view output) {
    const auto user = parse_passwd(output, "alice");
    return user ? "none" : user.error().message;
  };
  EXPECT_THAT(message("Alice:x:1:1::/:/bin/sh"), HasSubstr("no user alice, but Alice"));
  EXPECT_THAT(message(""), HasSubstr("told no user but: nothing"));
  EXPECT_THAT(message("\x1b[2J\nx"), HasSubstr("told no user but: \\x1b[2J"));
  EXPECT_THAT(message("alice:x:1000:1000::/home"), HasSubstr("told no user"));
  EXPECT_THAT(message("alice:x:1000:1000::/home:/bin/sh:more"), HasSubstr("told no user"));
  for (const char* id : {"", "-1", "4294967295", "4294967296", "0x1", "1 "}) {
    EXPECT_THAT(message(fmt::format("alice:x:{}:1000::/home:/bin/sh", id)), HasSubstr("no ids"));
    EXPECT_THAT(message(fmt::format("alice:x:1000:{}::/home:/bin/sh", id)), HasSubstr("no ids"));
  }
  EXPECT_THAT(message("alice:x:1000:1000:::/bin/sh"), HasSubstr("no home folder"));
  EXPECT_THAT(message("alice:x:1000:1000::home:/bin/sh"), HasSubstr("no home folder: 'home'"));
}

TEST(RunAs, PeopleMayAndOthersOnlyByName) {
  const User person{"alice", 1000, 1000, "/home/alice", "/bin/bash"};
  EXPECT_TRUE(check_run_as(person, false));
  struct Refused {
    User user;
    const char* why;
  };
  for (const Refused& it : {Refused{{"root", 0, 0, "/root", "/bin/bash"}, "root (uid 0)"},
                            {{"toor", 0, 0, "/root", "/bin/bash"}, "toor (uid 0)"},
                            {{"svc", 999, 1000, "/", "/bin/sh"}, "svc (uid 999)"},
                            {{"nobody", 65534, 65534, "/", "/usr/sbin/nologin"}, "nologin"},
                            {{"ftp", 2000, 2000, "/", "/bin/false"}, "/bin/false"},
                            {{"odd", 2000, 2000, "/", "nologin"}, "cannot log in"}}) {
    const auto checked = check_run_as(it.user, false);
    ASSERT_FALSE(checked) << it.user.name;
    EXPECT_THAT(checked.error().message, HasSubstr(it.why));
    EXPECT_THAT(checked.error().message, HasSubstr("named in run_as"));
    EXPECT_TRUE(check_run_as(it.user, true)) << it.user.name;
  }
}

}  // namespace
}  // namespace hvd
