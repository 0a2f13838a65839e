#include "launcher/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/brief_hosts.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Hostfile, TakesKeysCommentsAndAnyLineEnds) {
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

TEST(Hostfile, TakesTheFormsOfOtherLaunchers) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"node1 slots=2 max_slots=4\nnode2 max-slots=2 slots=2", "node1:2 node2:2"},
      {"node1 username=alice slots=1", "alice@node1:1"},
      {"node1 user=alice", "alice@node1:?"},
      {"node1:2\nnode2:2", "node1:2 node2:2"},
      {"worker-1 slots=4 \nworker-2 slots=4 ", "worker-1:4 worker-2:4"},
      {"node[01-03] slots=2", "node01:2 node02:2 node03:2"},
  };
  for (const auto& [text, expected] : cases) {
    std::vector<std::string> notes;
    EXPECT_EQ(brief(parse_hostfile(text, "hosts", &notes)), expected) << text;
    EXPECT_THAT(notes, IsEmpty()) << text;
  }
}

TEST(Hostfile, TakesWhatHoldsForOneHost) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"node1 gpus=0,2,4-5", "node1:4(0,2,4,5)"},
      {"node1 slots=8 gpus=0,1", "node1:8(0,1)"},
      {"node1 gpus=GPU-8a/0,MIG-1b", "node1:2(GPU-8a/0,MIG-1b)"},
      {"node1:0-1 slots=4", "node1:4(0,1)"},
      {"node[1-2]:0,2,4", "node1:3(0,2,4) node2:3(0,2,4)"},
      {"node1 key=~/.ssh/id_b port=22", "node1/22:?<~/.ssh/id_b>"},
      {"node1 key='my key' slots=1", "node1:1<my key>"},
      {"node1 env.A=1 env.B=\"b # c\"", "node1:?{A=1}{B=b # c}"},
      {"node1 env.A='' env.B==", "node1:?{A=}{B==}"},
      {"node1 env.A=x=y", "node1:?{A=x=y}"},
      {"node1 env.A='it''s'", "node1:?{A=its}"},
      {"DOM\\me@node1", "DOM\\me@node1:?"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(brief(parse_hostfile(text, "hosts", nullptr)), expected) << text;
  }
}

TEST(Hostfile, ErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "hosts: no host with slots is left"},
      {"# nothing\n", "hosts: no host with slots is left"},
      {"node1\r\n\r\nnode2 slots=x", "hosts:3: \"x\" is no number of slots for node2"},
      {"node1 slots", "hosts:1: \"slots\" is not known here"},
      {"node1 max_slots=x", "hosts:1: \"max_slots=x\" is no number of slots"},
      {"node1 slots=4 max_slots=2", "hosts:1: host node1 has 4 slots and at most 2"},
      {"node1 8", "hosts:1: \"8\" is not known here"},
      {"node1 color=red", "hosts:1: \"color\" is not known here"},
      {"node1:2 slots=2", "hosts:1: host node1 has its slots twice"},
      {"me@node1 user=you", "hosts:1: host node1 has its user twice"},
      {"node1 user=-l", "hosts:1: \"-l\" is no usable user name"},
      {"node1 port=0", "hosts:1: \"port=0\" is no port"},
      {"node1 port=65536", "is no port"},
      {"node1 key=", "is no single key file"},
      {"node1 gpus=0,0", "hosts:1: host node1: GPU 0 is listed twice"},
      {"node1 gpus=-1", "is no GPU"},
      {"node1 env.1A=x", "hosts:1: env.1A names no variable"},
      {"node1 env.=x", "names no variable"},
      {"node1 env.A=x env.A=y", "hosts:1: env.A is given twice"},
      {"node1 slots=1\nnode1 slots=1 env.A=x", "hosts:2: host node1 is listed more than once"},
      {"\nnode1 env.A='x", "hosts:2: a quote is not closed"},
      {"node1:2,node2:2", "hosts:1: \"node2:2\" is no GPU"},
      {std::string("node1\nno\0de", 11), "hosts:2: \"no\\x00de\" is no host"},
  };
  for (const auto& [text, expected] : cases) {
    const auto hosts = parse_hostfile(text, "hosts", nullptr);
    ASSERT_FALSE(hosts) << text;
    EXPECT_EQ(hosts.error().code, ExitCode::kUsage);
    EXPECT_THAT(hosts.error().message, HasSubstr(expected)) << text;
  }
}

TEST(Hostfile, ErrorsTellNoValuesOfVariables) {
  for (const char* text : {"node1 emv.TOKEN=hunter2", "node1 env.TOKEN='hunter2",
                           "node1 env.A=hunter2 env.A=hunter2", "node1 env.+=hunter2"}) {
    EXPECT_THAT(parse_hostfile(text, "hosts", nullptr).error().message,
                testing::Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace hvd
