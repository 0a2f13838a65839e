#include "launcher/host_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::HasSubstr;

using Filter = Result<std::vector<HostSpec>> (*)(std::vector<HostSpec>, std::string_view);

std::string brief(Filter filter, std::string_view hosts, std::string_view list) {
  const auto left = filter(*parse_hosts(hosts, nullptr), list);
  return left ? format_hosts(*left) : "error: " + left.error().message;
}

struct Filtered {
  const char* hosts;
  const char* list;
  const char* left;
};

TEST(HostFilter, IncludeKeepsWhatMatchesInTheOrderOfTheHosts) {
  const std::vector<Filtered> cases = {
      {"node[1-4]:8", "node3,node1", "node1:8,node3:8"},
      {"node[1-4]:8", "node[2-3]", "node2:8,node3:8"},
      {"node[1-2]:8,gpu1:4", "node*", "node1:8,node2:8"},
      {"node[1-12]", "node?", "node1,node2,node3,node4,node5,node6,node7,node8,node9"},
      {"node[1-2]:8", "node1:0,2@node2", "node1:gpus=0,2,node2:8"},
      {"node[1-2]:8", "node2:1-3,node1", "node1:8,node2:gpus=1,2,3"},
      {"node1,node2", "node1:3", "node1:gpus=3"},
      {"node1:gpus=4,5", "node1:5", "node1:gpus=5"},
      {"me@node1:2,node2:2", "node1", "me@node1:2"},
      {"[fd00::1]:2,node2:2", "[fd00::1]:0", "[fd00::1]:gpus=0"},
      {"node1:4,node2:4", "node1:0,node1:2", "node1:gpus=0,2"},
      {"node1:4", "node1:1,node1", "node1:4"},
  };
  for (const auto& [hosts, list, left] : cases) {
    EXPECT_EQ(brief(include_hosts, hosts, list), left) << hosts << " " << list;
  }
}

TEST(HostFilter, ExcludeTakesHostsOrTheirGpusAway) {
  const std::vector<Filtered> cases = {
      {"node[1-3]:8", "node2", "node1:8,node3:8"},
      {"node[1-3]:8", "node[2-3]", "node1:8"},
      {"node[1-2]:4", "node2:0,3", "node1:4,node2:gpus=1,2"},
      {"node[1-2]:2", "node2:0@node2:1", "node1:2"},
      {"node1:gpus=4-6,node2:1", "node1:5", "node1:gpus=4,6,node2:1"},
      {"node1,node2", "node1", "node2"},
  };
  for (const auto& [hosts, list, left] : cases) {
    EXPECT_EQ(brief(exclude_hosts, hosts, list), left) << hosts << " " << list;
  }
}

TEST(HostFilter, NamesThePatternThatIsWrong) {
  struct Wrong {
    Filter filter;
    const char* hosts;
    const char* list;
    const char* text;
  };
  const std::vector<Wrong> cases = {
      {include_hosts, "node[1-2]:1", "node3",
       "\"node3\" matches none of the hosts node1:1,node2:1"},
      {exclude_hosts, "node1:1", "node3", "\"node3\" matches none"},
      {include_hosts, "node1:1", "", "names no host"},
      {include_hosts, "node1:1", "node1,", "names no host"},
      {include_hosts, "node1:1", "node1:x", "\"x\" is no GPU"},
      {include_hosts, "node1:1", "node[2-1]", "runs backwards"},
      {include_hosts, "node1:gpus=4,5", "node1:0", "selects GPU 0, but host node1 is listed with"},
      {exclude_hosts, "node1:2", "node1:2", "takes away GPU 2, which host node1 does not have"},
      {exclude_hosts, "node1", "node1:0", "whose number is not known"},
      {exclude_hosts, "node1:2", "node*", "no host is left"},
  };
  for (const auto& [filter, hosts, list, text] : cases) {
    EXPECT_THAT(brief(filter, hosts, list), HasSubstr(text)) << list;
  }
}

}  // namespace
}  // namespace hvd
