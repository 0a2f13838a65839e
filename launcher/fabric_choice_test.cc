#include "launcher/fabric_choice.h"

#include <gmock/gmock.h>

#include "launcher/ip_address.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

void add_interface(FabricNode& node, std::string name, std::vector<std::string> addresses,
                   std::uint32_t speed = 0, std::uint32_t prefix = 24) {
  v1::Interface& interface = *node.hello.add_interfaces();
  interface.set_is_loopback(name == "lo");
  interface.set_is_virtual(name == "docker0");
  interface.set_is_up(name != "down0");
  interface.set_name(std::move(name));
  interface.set_speed_mbit(speed);
  for (std::string& address : addresses) {
    interface.add_addresses(std::move(address));
    interface.add_prefix_lengths(prefix);
  }
}

// Every host has lo and the same docker0, as real ones do.
FabricNode host(std::string name, std::string boot_id) {
  FabricNode node;
  node.host = std::move(name);
  node.hello.set_boot_id(std::move(boot_id));
  node.hello.set_network_namespace(1);
  node.hello.mutable_fabric_listen()->set_port(61234);
  add_interface(node, "lo", {"127.0.0.1", "::1"});
  add_interface(node, "docker0", {"172.17.0.1"}, 10000);
  return node;
}

std::vector<FabricNode> two_hosts() {
  std::vector<FabricNode> nodes = {host("node1", "a"), host("node2", "b")};
  add_interface(nodes[0], "enpA", {"10.9.0.1"}, 1000);
  add_interface(nodes[1], "eno1", {"10.9.0.2"}, 1000);
  return nodes;
}

struct Outcome {
  std::string candidate;
  std::string local;  // empty: not reached
  std::string interface;
  std::string error = "no answer in 3 s";
};
std::optional<v1::FabricProbeReply> probe(const std::vector<Outcome>& outcomes) {
  v1::FabricProbeReply reply;
  for (const Outcome& outcome : outcomes) {
    auto& result = *reply.add_results();
    result.set_candidate(outcome.candidate);
    result.set_reached(!outcome.local.empty());
    result.set_local_address(outcome.local);
    result.set_interface(outcome.interface);
    if (outcome.local.empty()) result.set_error(outcome.error);
  }
  return reply;
}

FabricCandidates candidates_of(const std::vector<FabricNode>& nodes, FabricOptions options = {}) {
  auto candidates = fabric_candidates(nodes, options);
  EXPECT_TRUE(candidates) << (candidates ? "" : candidates.error().message);
  return candidates.value_or(FabricCandidates{});
}

std::string candidates_error(const std::vector<FabricNode>& nodes, FabricOptions options) {
  const auto candidates = fabric_candidates(nodes, options);
  EXPECT_FALSE(candidates);
  return candidates ? "" : candidates.error().message;
}

TEST(FabricCandidates, RealBeforeVirtualFastBeforeSlowNeverLoopbackOrDown) {
  auto nodes = two_hosts();
  add_interface(nodes[0], "ib0", {"10.8.0.1", "fd00::1"}, 100000);
  add_interface(nodes[0], "down0", {"10.7.0.1"}, 400000);
  add_interface(nodes[0], "odd", {"127.0.1.1"}, 400000);
  const FabricCandidates found = candidates_of(nodes);
  EXPECT_THAT(found.addresses, ElementsAre("10.8.0.1", "fd00::1", "10.9.0.1", "172.17.0.1"));
  EXPECT_TRUE(found.needs_probe);
}

TEST(FabricCandidates, OneMachineUsesLoopbackAndNeedsNoProbe) {
  std::vector<FabricNode> nodes = {host("localhost", "a"), host("127.0.0.1", "a")};
  const FabricCandidates found = candidates_of(nodes);
  EXPECT_THAT(found.addresses, ElementsAre("127.0.0.1"));
  EXPECT_FALSE(found.needs_probe);
  const FabricDecision decision = decide_without_probes(nodes, {}, found);
  EXPECT_EQ(decision.master_addr, "127.0.0.1");
  EXPECT_EQ(decision.nodes[1].address, "127.0.0.1");
  EXPECT_EQ(decision.nodes[1].interface, "lo");
  // Two containers of one machine are not one machine.
  nodes[1].hello.set_network_namespace(2);
  EXPECT_THAT(candidates_of(nodes).addresses, ElementsAre("172.17.0.1"));
}

TEST(FabricCandidates, InterfacesByNameSubnetOrAddressInTheUsersOrder) {
  auto nodes = two_hosts();
  add_interface(nodes[0], "ib0", {"10.8.0.1", "fd00::1"}, 100000);
  FabricOptions options;
  options.network_interfaces = {"10.9.0.0/16", "fd00::/8", "docker0"};
  EXPECT_THAT(candidates_of(nodes, options).addresses,
              ElementsAre("10.9.0.1", "fd00::1", "172.17.0.1"));
  options.network_interfaces = {"ib7"};
  EXPECT_THAT(candidates_error(nodes, options),
              HasSubstr("node1 has no usable address on --network-interfaces ib7; it has "));
  EXPECT_THAT(candidates_error(nodes, options), HasSubstr("enpA (10.9.0.1)"));
  options.network_interfaces = {"lo"};
  EXPECT_THAT(candidates_error(nodes, options), HasSubstr("no usable address"));
}

TEST(FabricCandidates, OnlyLoopbackOnAHostOfSeveralIsAnErrorThatNamesTheFile) {
  std::vector<FabricNode> nodes = two_hosts();
  nodes[0].hello.clear_interfaces();
  add_interface(nodes[0], "lo", {"127.0.0.1"});
  EXPECT_THAT(candidates_error(nodes, {}), HasSubstr("/etc/hosts"));
  FabricOptions options;
  options.master_addr = "127.0.1.1";
  EXPECT_THAT(candidates_error(two_hosts(), options), HasSubstr("/etc/hosts"));
}

TEST(FabricCandidates, MasterAddrOverridesAndIsNumericIfItIsChecked) {
  FabricOptions options;
  options.master_addr = "192.168.0.9";
  EXPECT_THAT(candidates_of(two_hosts(), options).addresses, ElementsAre("192.168.0.9"));
  options.master_addr = "node1.example";
  EXPECT_THAT(candidates_error(two_hosts(), options), HasSubstr("--fabric=skip"));
  options.mode = FabricMode::kSkip;
  EXPECT_FALSE(candidates_of(two_hosts(), options).needs_probe);
}

TEST(DecideFabric, DifferentInterfaceNamesEachNodeGetsItsOwn) {
  const auto nodes = two_hosts();
  const auto decision = decide_fabric(
      nodes, {}, candidates_of(nodes),
      {std::nullopt, probe({{"10.9.0.1", "10.9.0.2", "eno1"}, {"172.17.0.1", "", ""}})});
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->master_addr, "10.9.0.1");
  EXPECT_EQ(decision->nodes[0].address, "10.9.0.1");
  EXPECT_EQ(decision->nodes[0].interface, "enpA");
  EXPECT_EQ(decision->nodes[1].address, "10.9.0.2");
  EXPECT_EQ(decision->nodes[1].interface, "eno1");
  EXPECT_THAT(decision->warnings, IsEmpty());
}

TEST(DecideFabric, ADeadFasterInterfaceIsPassedOver) {
  auto nodes = two_hosts();
  add_interface(nodes[0], "eth9", {"10.66.0.1"}, 100000);
  const FabricCandidates candidates = candidates_of(nodes);
  ASSERT_EQ(candidates.addresses[0], "10.66.0.1");
  const auto decision = decide_fabric(
      nodes, {}, candidates,
      {std::nullopt, probe({{"10.66.0.1", "", ""}, {"10.9.0.1", "10.9.0.2", "eno1"}})});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->master_addr, "10.9.0.1");
}

TEST(DecideFabric, ACandidateMustBeReachedByAll) {
  auto nodes = two_hosts();
  nodes.push_back(host("node3", "c"));
  add_interface(nodes[0], "ib0", {"10.8.0.1"}, 100000);
  const auto decision = decide_fabric(
      nodes, {}, candidates_of(nodes),
      {std::nullopt, probe({{"10.8.0.1", "10.8.0.2", "ib0"}, {"10.9.0.1", "10.9.0.2", "eno1"}}),
       probe({{"10.8.0.1", "", ""}, {"10.9.0.1", "10.9.0.3", "eth0"}})});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->master_addr, "10.9.0.1");
  EXPECT_EQ(decision->nodes[2].address, "10.9.0.3");
}

TEST(DecideFabric, FailureNamesThePairAndEveryAddressWithItsReason) {
  const auto nodes = two_hosts();
  const auto decision =
      decide_fabric(nodes, {}, candidates_of(nodes),
                    {std::nullopt, probe({{"10.9.0.1", "", "", "no answer in 3 s"},
                                          {"172.17.0.1", "", "", "connection refused"}})});
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().code, ExitCode::kInfrastructure);
  EXPECT_THAT(decision.error().message,
              HasSubstr("node2 cannot reach node1 (10.9.0.1:61234 no answer in 3 s, "
                        "172.17.0.1:61234 connection refused)"));
  EXPECT_THAT(decision.error().message, HasSubstr("--master-port"));
  const auto silent = decide_fabric(nodes, {}, candidates_of(nodes), {std::nullopt, std::nullopt});
  EXPECT_THAT(silent.error().message, HasSubstr("no report"));
}

TEST(DecideFabric, WarnGoesOnWithTheBestThereIs) {
  const auto nodes = two_hosts();
  FabricOptions options;
  options.mode = FabricMode::kWarn;
  const auto decision = decide_fabric(nodes, options, candidates_of(nodes, options),
                                      {std::nullopt, probe({{"10.9.0.1", "", ""}})});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->master_addr, "10.9.0.1");
  EXPECT_EQ(decision->nodes[1].address, "10.9.0.2");
  EXPECT_EQ(decision->nodes[1].interface, "eno1");
  ASSERT_EQ(decision->warnings.size(), 1U);
  EXPECT_THAT(decision->warnings[0], HasSubstr("node2 cannot reach node1"));
}

TEST(DecideFabric, OneAddressForTwoMachinesIsRefused) {
  auto nodes = two_hosts();
  nodes.push_back(host("node3", "c"));
  const std::vector<std::optional<v1::FabricProbeReply>> probes = {
      std::nullopt, probe({{"10.9.0.1", "10.9.0.254", ""}}),
      probe({{"10.9.0.1", "10.9.0.254", ""}})};
  const auto decision = decide_fabric(nodes, {}, candidates_of(nodes), probes);
  ASSERT_FALSE(decision);
  EXPECT_THAT(decision.error().message, HasSubstr("node2 and node3 are both seen as 10.9.0.254"));
  FabricOptions options;
  options.mode = FabricMode::kWarn;
  const auto warned = decide_fabric(nodes, options, candidates_of(nodes), probes);
  ASSERT_TRUE(warned);
  EXPECT_THAT(warned->warnings[0], HasSubstr("both seen as"));
  // Two agents on one machine do share an address.
  nodes[2].hello.set_boot_id("b");
  EXPECT_TRUE(decide_fabric(nodes, {}, candidates_of(nodes), probes));
}

TEST(DecideFabric, AddressTranslationIsTold) {
  const auto nodes = two_hosts();
  const auto decision = decide_fabric(nodes, {}, candidates_of(nodes),
                                      {std::nullopt, probe({{"10.9.0.1", "10.9.0.254", ""}})});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->nodes[1].interface, "");
  EXPECT_THAT(decision->warnings, ElementsAre(HasSubstr("node2 is seen as 10.9.0.254")));
}

TEST(DecideFabric, Ipv6OnlyHostsWork) {
  std::vector<FabricNode> nodes = {host("node1", "a"), host("node2", "b")};
  for (FabricNode& node : nodes) node.hello.clear_interfaces();
  add_interface(nodes[0], "eth0", {"fd00::1"}, 1000, 64);
  add_interface(nodes[1], "eth0", {"fd00::2"}, 1000, 64);
  const auto decision = decide_fabric(nodes, {}, candidates_of(nodes),
                                      {std::nullopt, probe({{"fd00::1", "fd00::2", "eth0"}})});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->master_addr, "fd00::1");
  const auto failed =
      decide_fabric(nodes, {}, candidates_of(nodes), {std::nullopt, probe({{"fd00::1", "", ""}})});
  EXPECT_THAT(failed.error().message, HasSubstr("[fd00::1]:61234 no answer"));
}

TEST(DecideWithoutProbes, TakesEachNodesAddressInTheSubnetOfTheMaster) {
  auto nodes = two_hosts();
  add_interface(nodes[1], "ib0", {"10.8.0.2"}, 100000);
  FabricOptions options;
  options.mode = FabricMode::kSkip;
  const FabricDecision decision =
      decide_without_probes(nodes, options, candidates_of(nodes, options));
  EXPECT_EQ(decision.master_addr, "10.9.0.1");
  EXPECT_EQ(decision.nodes[0].interface, "enpA");
  EXPECT_EQ(decision.nodes[1].address, "10.9.0.2");
  EXPECT_EQ(decision.nodes[1].interface, "eno1");
}

TEST(IpAddress, SubnetsAndLoopbacks) {
  EXPECT_TRUE(parse_subnet("10.9.0.0/15")->contains(*parse_ip("10.8.1.1")));
  EXPECT_FALSE(parse_subnet("10.9.0.0/16")->contains(*parse_ip("10.8.1.1")));
  EXPECT_FALSE(parse_subnet("0.0.0.0/0")->contains(*parse_ip("::1")));
  for (const char* bad : {"eth0", "10.9.0.0/33", "10.9.0.0/", "10.9.0.0/x", "10.9.0/8", ""}) {
    EXPECT_FALSE(parse_subnet(bad)) << bad;
  }
  for (const char* own : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback_address(own)) << own;
  }
  EXPECT_FALSE(is_loopback_address("10.127.0.1"));
}

}  // namespace
}  // namespace hvd
