#include "launcher/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "user@name/port:slots", '?' for unknown slots, blanks between hosts.
std::string brief(const Result<std::vector<HostSpec>>& hosts) {
  if (!hosts) return "error: " + hosts.error().message;
  std::string result;
  for (const HostSpec& host : *hosts) {
    if (!result.empty()) result += " ";
    if (!host.user.empty()) result += host.user + "@";
    result += host.name;
    if (host.port != 0) result += fmt::format("/{}", host.port);
    result += host.slots ? fmt::format(":{}", *host.slots) : ":?";
  }
  return result;
}

TEST(Hostlist, AcceptsTheFormsThatUsersWrite) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"node1:8", "node1:8"},
      {"node1", "node1:?"},
      {"node1:8,node2:4,node3", "node1:8 node2:4 node3:?"},
      {"alice@node1:2,node2:2", "alice@node1:2 node2:2"},
      {"alice@example@node1:2", "alice@example@node1:2"},
      {"[fd00::1]:2,[::1]", "fd00::1:2 ::1:?"},
      {"[fe80::1%eth0]:2", "fe80::1%eth0:2"},
      {"me@[fd00::1]:2", "me@fd00::1:2"},
      {"10.0.0.1:2", "10.0.0.1:2"},
      {"node1: 1, node2:1 ", "node1:1 node2:1"},
      {"w.1.test:2,w.2.test:2", "w.1.test:2 w.2.test:2"},
      {"node1.test.:1,Node1:1,node1:1", "node1.test.:1 Node1:1 node1:1"},
      {"my_host-3:1", "my_host-3:1"},
  };
  for (const auto& [text, expected] : cases) {
    std::vector<std::string> notes;
    EXPECT_EQ(brief(parse_hosts(text, &notes)), expected) << text;
    EXPECT_THAT(notes, IsEmpty()) << text;
  }
}

TEST(Hostlist, NamesTheTokenThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has an empty entry"},
      {",node1:1,", "\",node1:1,\" has an empty entry"},
      {"node1:1,,node2:1", "has an empty entry"},
      {"node1:x",
       "\"x\" is no number of slots for node1; write a number from 0 to 65536, as in "
       "node1:8"},
      {"node1:", "\"\" is no number of slots for node1"},
      {"node1:-1", "\"-1\" is no number of slots"},
      {"node1:1.5", "\"1.5\" is no number of slots"},
      {"node1:65537", "\"65537\" is no number of slots"},
      {"node1:99999999999999999999", "is no number of slots"},
      {"node1:1 node2:1", "more than one colon"},
      {"node1 node2", "\"node1 node2\" is no host"},
      {"-oProxyCommand=x:1", "is no host"},
      {"-node1:1", "\"-node1:1\" is no host"},
      {"n\xc3\xb6"
       "de:1",
       "is no host"},
      {"node\x1b[1m:1", "\"node\\x1b[1m:1\" is no host"},
      {":4", "\":4\" is no host"},
      {"@node1:1", "has no usable user name"},
      {"-l@node1:1", "has no usable user name"},
      {"a b@node1:1", "has no usable user name"},
      {"me@:1", "is no host"},
      {"node1:1:2", "more than one colon"},
      {"fd00::1", "in brackets"},
      {"fd00::1:2", "in brackets"},
      {"[fd00::1", "has no IPv6 address in its brackets"},
      {"[node1]:2", "has no IPv6 address in its brackets"},
      {"[fd00::1]2", "goes on after its bracket"},
      {"node1:0", "no host with slots is left"},
      {"node1,node1", "host node1 is listed more than once and not always with slots"},
      {"node1:2,node1", "host node1 is listed more than once and not always with slots"},
      {"node1:65536,node1:1", "more than 65536 slots"},
  };
  for (const auto& [text, expected] : cases) {
    const auto hosts = parse_hosts(text, nullptr);
    ASSERT_FALSE(hosts) << text;
    EXPECT_EQ(hosts.error().code, ExitCode::kUsage);
    EXPECT_THAT(hosts.error().message, HasSubstr(expected)) << text;
  }
  EXPECT_FALSE(parse_hosts(std::string(300, 'a') + ":1", nullptr));
}

TEST(Hostlist, ZeroSlotsAreLeftOutWithANote) {
  std::vector<std::string> notes;
  EXPECT_EQ(brief(parse_hosts("node1:0,node2:2", &notes)), "node2:2");
  EXPECT_THAT(notes, ElementsAre("host node1 has 0 slots and is left out"));
}

TEST(Hostlist, RepeatedHostsAreSummedWhereTheyFirstStood) {
  std::vector<std::string> notes;
  EXPECT_EQ(brief(parse_hosts("node1:2,node2:1,node1:3,node1:1", &notes)), "node1:6 node2:1");
  EXPECT_THAT(notes, ElementsAre("host node1 is listed 3 times; its slots are summed to 6"));
  notes.clear();
  EXPECT_EQ(brief(parse_hosts("a@node1:2,b@node1:3", &notes)), "a@node1:2 b@node1:3");
  EXPECT_THAT(notes, IsEmpty());
}

TEST(Hostlist, HostfileTakesKeysCommentsAndAnyLineEnds) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"node1 slots=8\nnode2 slots=4\n", "node1:8 node2:4"},
      {"\n# a comment\n  node1  # here\n\n", "node1:?"},
      {"node1 slots=8\r\nnode2:4\r\n", "node1:8 node2:4"},
      {"node1:8\rnode2:4", "node1:8 node2:4"},
      {"node1 slots = 8\n\tnode2\tslots =4", "node1:8 node2:4"},
      {"\xef\xbb\xbfnode1 slots=8", "node1:8"},
      {"me@node1 slots=2 port=2222\nnode1 slots=2", "me@node1/2222:2 node1:2"},
      {"[::1]:2 port=22", "::1/22:2"},
      {"node1 slots=2\nnode1 slots=1", "node1:3"},
  };
  for (const auto& [text, expected] : cases) {
    std::vector<std::string> notes;
    EXPECT_EQ(brief(parse_hostfile(text, "hosts", &notes)), expected) << text;
  }
}

TEST(Hostlist, HostfileErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "hosts: no host with slots is left"},
      {"# nothing\n", "hosts: no host with slots is left"},
      {"node1\r\n\r\nnode2 slots=x", "hosts:3: \"x\" is no number of slots for node2"},
      {"node1 slots", "hosts:1: \"slots\" is not known here"},
      {"node1 max_slots=8", "hosts:1: \"max_slots=8\" is not known here"},
      {"node1 8", "hosts:1: \"8\" is not known here"},
      {"node1:2 slots=2", "hosts:1: host node1 has its slots twice"},
      {"node1 port=0", "hosts:1: \"port=0\" is no port"},
      {"node1 port=65536", "is no port"},
      {"node1:2,node2:2", "hosts:1: "},
      {std::string("node1\nno\0de", 11), "hosts:2: \"no\\x00de\" is no host"},
  };
  for (const auto& [text, expected] : cases) {
    const auto hosts = parse_hostfile(text, "hosts", nullptr);
    ASSERT_FALSE(hosts) << text;
    EXPECT_THAT(hosts.error().message, HasSubstr(expected)) << text;
  }
}

TEST(Hostlist, FormatIsReadAgainAsTheSameList) {
  for (const char* text : {"node1:8,node2", "me@node1:2,[fd00::1]:4", "[::1]"}) {
    EXPECT_EQ(format_hosts(*parse_hosts(text, nullptr)), text);
  }
}

TEST(Hostlist, LongListsAreCutForASentence) {
  std::vector<HostSpec> hosts(100, HostSpec{.name = "n", .slots = 1});
  EXPECT_EQ(format_hosts(hosts), "n:1,n:1,n:1,n:1,n:1,n:1,n:1,n:1,... (100 hosts)");
}

TEST(Hostlist, TellsHostsFromCommands) {
  for (const char* word : {"node2:1", "node2:1,", "me@node2:8", "[::1]:2", "10.0.0.1:4"}) {
    EXPECT_TRUE(looks_like_host(word)) << word;
  }
  for (const char* word : {"python", "true", "./a:b", "", ":", ":8", "node2:", "a/b:1", "-x:1"}) {
    EXPECT_FALSE(looks_like_host(word)) << word;
  }
}

}  // namespace
}  // namespace hvd
