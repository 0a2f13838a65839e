#include "launcher/horovod_contract.h"

#include <gmock/gmock.h>

#include "launcher/plan.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using testing::ElementsAre;
using Probes = std::vector<std::optional<v1::FabricProbeReply>>;

FabricNode node_with(const std::string& boot_id, const std::vector<std::string>& addresses) {
  FabricNode node;
  node.host = boot_id;
  node.hello.set_boot_id(boot_id);
  v1::Interface& loopback = *node.hello.add_interfaces();
  loopback.set_name("lo");
  loopback.set_is_up(true);
  loopback.set_is_loopback(true);
  loopback.add_addresses("127.0.0.1");
  v1::Interface& interface = *node.hello.add_interfaces();
  interface.set_name("eth0");
  interface.set_is_up(true);
  for (const std::string& address : addresses) interface.add_addresses(address);
  return node;
}

v1::FabricProbeReply reached(const std::vector<std::string>& candidates) {
  v1::FabricProbeReply reply;
  for (const std::string& candidate : candidates) {
    auto& result = *reply.add_results();
    result.set_candidate(candidate);
    result.set_reached(true);
  }
  return reply;
}

std::vector<std::string> scopes_of(const v1::HorovodStore& store) {
  std::vector<std::string> lines;
  for (const auto& scope : store.scopes()) {
    lines.push_back(fmt::format("{} {}", scope.name(), scope.size()));
  }
  return lines;
}

std::vector<RankPlace> places_on(const std::vector<HostSpec>& hosts) {
  return make_plan(hosts, std::nullopt).value().ranks;
}

TEST(HorovodContract, ListensOnLoopbackOnlyWhereOneHostAloneIsPlain) {
  EXPECT_EQ(horovod_listen_address(1, {}), "127.0.0.1");
  EXPECT_EQ(horovod_listen_address(2, {}), "0.0.0.0");
  EXPECT_EQ(horovod_listen_address(1, {FabricMode::kRequire, {"eth0"}, ""}), "0.0.0.0");
  EXPECT_EQ(horovod_listen_address(1, {FabricMode::kRequire, {}, "10.9.0.1"}), "0.0.0.0");
}

TEST(HorovodContract, TakesTheIPv4AddressThatAllNodesReach) {
  struct Case {
    const char* what;
    std::vector<std::string> of_node0;
    std::vector<std::string> candidates;
    std::string master_addr;
    Probes probes;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"MASTER_ADDR",
       {"10.9.0.1"},
       {"10.9.0.1"},
       "10.9.0.1",
       {{}, reached({"10.9.0.1"})},
       "10.9.0.1"},
      {"IPv6 first, IPv4 reached as well",
       {"fd00::1", "10.9.0.1"},
       {"fd00::1", "10.9.0.1"},
       "fd00::1",
       {{}, reached({"fd00::1", "10.9.0.1"})},
       "10.9.0.1"},
      {"IPv4 reached by one of two",
       {"fd00::1", "10.9.0.1"},
       {"fd00::1", "10.9.0.1"},
       "fd00::1",
       {{}, reached({"fd00::1", "10.9.0.1"}), reached({"fd00::1"})},
       ""},
      {"a node that did not answer",
       {"fd00::1", "10.9.0.1"},
       {"fd00::1", "10.9.0.1"},
       "fd00::1",
       {{}, reached({"fd00::1", "10.9.0.1"}), std::nullopt},
       ""},
      {"IPv6 only", {"fd00::1"}, {"fd00::1"}, "fd00::1", {{}, reached({"fd00::1"})}, ""},
      {"not probed", {"10.9.0.1"}, {"10.9.0.1"}, "10.9.0.1", {}, "10.9.0.1"},
      {"not probed, IPv6 by option",
       {"fd00::1", "10.9.0.1"},
       {"fd00::1"},
       "fd00::1",
       {},
       "10.9.0.1"},
      {"not probed, IPv6 only", {"fd00::1"}, {"fd00::1"}, "fd00::1", {}, ""},
      {"one machine", {"10.9.0.1"}, {"127.0.0.1"}, "127.0.0.1", {}, "127.0.0.1"},
      {"one machine by IPv6", {"10.9.0.1"}, {"::1"}, "::1", {}, "127.0.0.1"},
  };
  for (const Case& c : cases) {
    const std::vector<FabricNode> nodes = {node_with("node1", c.of_node0),
                                           node_with("node2", {"10.9.0.2"})};
    FabricDecision decision;
    decision.master_addr = c.master_addr;
    decision.nodes = {{c.master_addr, ""}, {"10.9.0.2", ""}};
    EXPECT_EQ(horovod_address(nodes, {c.candidates, !c.probes.empty()}, decision, c.probes),
              c.expected)
        << c.what;
  }
}

TEST(HorovodContract, ANameForMasterAddrGivesNode0sOwnAddress) {
  const std::vector<FabricNode> nodes = {node_with("node1", {"10.9.0.1"}), node_with("node2", {})};
  FabricDecision decision;
  decision.master_addr = "node1.example.org";
  decision.nodes = {{"10.9.0.1", "eth0"}, {"10.9.0.2", "eth0"}};
  EXPECT_EQ(horovod_address(nodes, {{decision.master_addr}, false}, decision, {}), "10.9.0.1");
}

TEST(HorovodContract, ScopesHaveTheSizesOfTheAllocation) {
  const auto places = places_on({{.name = "node1", .slots = 3},
                                 {.name = "node2", .slots = 1},
                                 {.name = "node3", .slots = 2}});
  const auto store = horovod_store(places, node_with("node1", {"10.9.0.1"}), "10.9.0.1");
  EXPECT_THAT(scopes_of(store), ElementsAre("cross_0 3", "cross_1 2", "cross_2 1", "global 6",
                                            "local_node1 3", "local_node2 1", "local_node3 2"));
  for (const RankPlace& place : places) {
    const std::string local = fmt::format("local_{} {}", place.host, place.local_size);
    const std::string cross = fmt::format("cross_{} {}", place.local_rank, place.cross_size);
    EXPECT_THAT(scopes_of(store), testing::IsSupersetOf({local, cross}));
  }
}

TEST(HorovodContract, TheOrderOfRanksDoesNotMatter) {
  auto places = places_on({{.name = "node1", .slots = 2}, {.name = "node2", .slots = 1}});
  std::reverse(places.begin(), places.end());
  EXPECT_THAT(scopes_of(horovod_store(places, node_with("node1", {}), "127.0.0.1")),
              ElementsAre("cross_0 2", "cross_1 1", "global 3", "local_node1 2", "local_node2 1"));
}

TEST(HorovodContract, OnlyAnAddressThatNode0HoldsItselfNarrowsTheStore) {
  const FabricNode node0 = node_with("node1", {"10.9.0.1"});
  EXPECT_EQ(horovod_store({}, node0, "10.9.0.1").only_at(), "10.9.0.1");
  EXPECT_EQ(horovod_store({}, node0, "127.0.0.1").only_at(), "127.0.0.1");
  EXPECT_EQ(horovod_store({}, node0, "203.0.113.7").only_at(), "");
}

TEST(HorovodContract, NodesOfOneNameGetScopesOfTheirOwn) {
  auto places = places_on({{.name = "node1", .port = 2201, .slots = 2},
                           {.name = "node1", .port = 2202, .slots = 1},
                           {.name = "node2", .slots = 1}});
  make_hosts_distinct(places);
  std::vector<std::string> hosts;
  for (const RankPlace& place : places) hosts.push_back(place.host);
  EXPECT_THAT(hosts, ElementsAre("node1-node0", "node1-node0", "node1-node1", "node2"));
}

}  // namespace
}  // namespace hvd
