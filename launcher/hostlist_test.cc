#include "launcher/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/brief_hosts.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
      {"node1:8:port=2222,me@[::1]:2:port=22", "node1/2222:8 me@::1/22:2"},
      {"node1:port=2222,8:1", "node1/2222:? 8:1"},
  };
  for (const auto& [text, expected] : cases) {
    std::vector<std::string> notes;
    EXPECT_EQ(brief(parse_hosts(text, &notes)), expected) << text;
    EXPECT_THAT(notes, IsEmpty()) << text;
  }
}

TEST(Hostlist, RangesAreHostsInTheirOrder) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"node[1-3,7]:8", "node1:8 node2:8 node3:8 node7:8"},
      {"node[08-10]", "node08:? node09:? node10:?"},
      {"node[9-10]:1", "node9:1 node10:1"},
      {"r[1-2]-n[01-02].x:2", "r1-n01.x:2 r1-n02.x:2 r2-n01.x:2 r2-n02.x:2"},
      {"me@node[2,1]:1,node3:1", "me@node2:1 me@node1:1 node3:1"},
      {"node[3-3]:0,node4:1", "node4:1"},
      {"node[1-2]:2,node2:1", "node1:2 node2:3"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(brief(parse_hosts(text, nullptr)), expected) << text;
  }
  EXPECT_EQ(parse_hosts("n[1-65536]", nullptr)->size(), 65536U);
}

TEST(Hostlist, NumbersAloneAreGpusOfTheHostBefore) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"node1:0,2,4", "node1:3(0,2,4)"},
      {"node1:0,2,4,node2:8", "node1:3(0,2,4) node2:8"},
      {"node1:4", "node1:4"},
      {"node1:0-3", "node1:4(0,1,2,3)"},
      {"node1:0-1,6,node2:5,7", "node1:3(0,1,6) node2:2(5,7)"},
      {"node1:gpus=3", "node1:1(3)"},
      {"node1:gpus=3,1,node2:1", "node1:2(3,1) node2:1"},
      {"node1:8:port=22:gpus=0,1", "node1/22:8(0,1)"},
      {"me@node[1-2]:0,1", "me@node1:2(0,1) me@node2:2(0,1)"},
      {"[::1]:0,1", "::1:2(0,1)"},
      {"node1:gpus=0,node1:gpus=1", "node1:2(0,1)"},
      {"node1 : 0 , 1", "node1:2(0,1)"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(brief(parse_hosts(text, nullptr)), expected) << text;
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
      {"node\x1b[1m:1", "\"node\\x1b[1m\" has a bracket that is not closed"},
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
      {"node[1-3", "\"node[1-3\" has a bracket that is not closed"},
      {"node[3-1]:1", "has the range \"3-1\", which runs backwards"},
      {"node[]:1", "has \"\" in its brackets, which is no range"},
      {"node[a-b]:1", "has \"a-b\" in its brackets"},
      {"node[1-]:1", "has \"1-\" in its brackets"},
      {"node[1-02]:1", "whose ends have different digits"},
      {"node[1-65537]", "is more than 65536 hosts"},
      {"n[1-300]x[1-300]", "is more than 65536 hosts"},
      {"n[1-65536],m1", "more than 65536 hosts; name fewer"},
      {"node]1:1", "is no host"},
      {"8,node1:1", "\"8\" is a number and has no host before it"},
      {"10[8-9]",
       "\"108\" is a number and has no host before it; write a host's GPUs as in "
       "node1:0,2, and a host of that name as 10[8-9]:1"},
      {"node1,2,4", "\"2\" after node1 may be a host or a GPU"},
      {"node1:port=22,4", "\"4\" after node1 may be a host or a GPU"},
      {"node1:gpus=0,GPU-a", "\"GPU-a\" after node1 may be a host or a GPU"},
      {"node[1-60000]:0-99", "has more than 1048576 GPUs in all"},
      {"a[1-10000]:0-99,b[1-10000]:0-99", "have more than 1048576 GPUs in all"},
      {"node1:0,2,GPU-a", "\"GPU-a\" after node1 may be a host or a GPU"},
      {"node1:0-2,GPU-a", "\"GPU-a\" after node1 may be a host or a GPU"},
      {"node1:8:0,2", "more than one colon"},
      {"node1:0,2,2", "GPU 2 is listed twice"},
      {"node1:0,3-1", "\"3-1\" is no GPU"},
      {"node1:gpus=", "\"\" is no GPU"},
      {"node1:gpus=1:gpus=2", "has its GPUs twice"},
      {"node1:port=0", "is no port"},
      {"node1:port=1:port=2", "has its port twice"},
      {"node1:8:user=me", "\"user=me\" is not known for node1"},
      {"node1:0,1,node1:2", "not always with the same GPUs"},
      {"node1:0,1,node1:1,2", "GPU 1 is listed twice"},
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

TEST(Hostlist, FormatIsReadAgainAsTheSameList) {
  for (const char* text : {"node1:8,node2", "me@node1:2,[fd00::1]:4", "[::1]",
                           "node1:gpus=0,2,node2:2:port=22:gpus=3"}) {
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
