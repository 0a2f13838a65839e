#include "launcher/preflight.h"

#include <gmock/gmock.h>

#include <cerrno>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

NodeHello good(const std::string& host) {
  NodeHello node{host, {}, 0};
  node.reply.set_cwd_ok(true);
  node.reply.set_executable("/usr/bin/python");
  return node;
}

NodeHello without_command(const std::string& host, int number) {
  NodeHello node = good(host);
  node.reply.clear_executable();
  node.reply.set_executable_errno(number);
  return node;
}

NodeHello without_directory(const std::string& host) {
  NodeHello node = good(host);
  node.reply.set_cwd_ok(false);
  node.reply.set_cwd_errno(ENOENT);
  return node;
}

TEST(Preflight, EqualNodesPassWithoutAWord) {
  const auto result = check_hellos({good("node1"), good("node2")}, "/data", "python");
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->warnings, IsEmpty());
  EXPECT_THAT(result->details, SizeIs(2));
}

TEST(Preflight, TwoNamesOfOneMachineAreAWarningWhereSshLedToIt) {
  const auto on = [](const std::string& host, const std::string& boot_id, bool is_by_ssh = true) {
    NodeHello node = good(host);
    node.reply.set_boot_id(boot_id);
    node.is_by_ssh = is_by_ssh;
    return node;
  };
  const auto warnings = [](const std::vector<NodeHello>& nodes) {
    return check_hellos(nodes, "/data", "python")->warnings;
  };
  EXPECT_THAT(warnings({on("node1", "a"), on("n2", "b"), on("NODE1", "a")}),
              ElementsAre(HasSubstr("node1 and NODE1 are one machine")));
  EXPECT_THAT(warnings({on("node1", "a", false), on("NODE1", "a", false)}), IsEmpty());
  NodeHello other = on("node2", "a");
  other.reply.set_network_namespace(7);
  EXPECT_THAT(warnings({on("node1", "a"), other}), IsEmpty());
  EXPECT_THAT(warnings({on("node1", ""), on("node2", "")}), IsEmpty());
}

TEST(Preflight, DetailsTellTheLimitsThatTheRanksGet) {
  NodeHello node = good("node1");
  node.reply.set_memlock_hard(UINT64_MAX);
  node.reply.set_nofile_hard(4096);
  node.reply.set_core_hard(UINT64_MAX);
  const auto details = [&node](const RankLimits& limits) {
    return check_hellos({node}, "/data", "python", limits)->details.at(0);
  };
  EXPECT_THAT(details({1024, 0}), HasSubstr("memlock unlimited, nofile 1024 of 4096, core 0 of"));
  EXPECT_THAT(details({UINT64_MAX, UINT64_MAX}), HasSubstr("nofile 4096 of 4096, core unlimited"));
  EXPECT_THAT(details({}), HasSubstr("nofile 4096 of 4096"));
}

TEST(Preflight, SaysWhatHoldsTheProcessesOfEachNode) {
  NodeHello held = good("node1");
  held.reply.set_containment("cgroup /sys/fs/cgroup/a/hvd-x-n0");
  NodeHello other = good("node2");
  other.reply.set_containment("descendants (/sys/fs/cgroup/a is not writable for us)");
  const auto result = check_hellos({held, other}, "/data", "python");
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->notes,
              ElementsAre("node1: processes are held by cgroup /sys/fs/cgroup/a/hvd-x-n0",
                          "node2: processes are held by the process tree and the job's mark "
                          "(/sys/fs/cgroup/a is not writable for us)"));
}

TEST(Preflight, NamesEveryNodeWithoutTheCommand) {
  const auto result = check_hellos(
      {good("node1"), without_command("node2", ENOENT), without_command("node3", ENOENT)}, "/data",
      "trainer");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ExitCode::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("node2, node3: command not found: trainer"));
}

TEST(Preflight, NotExecutableIs126) {
  const auto result = check_hellos({without_command("node1", EACCES)}, "/data", "./run");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ExitCode::kNotExecutable);
}

TEST(Preflight, AMissingDirectoryComesFirst) {
  const auto result = check_hellos({without_command("node1", ENOENT), without_directory("node2")},
                                   "/only/here", "./run");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ExitCode::kInfrastructure);
  EXPECT_THAT(result.error().message, HasSubstr("node2: cannot enter the working directory"));
  EXPECT_THAT(result.error().message, HasSubstr("/only/here"));
}

TEST(Preflight, WarnsOfSkewedClocksAndOtherInterpreters) {
  NodeHello late = good("node2");
  late.realtime_offset_ns = -600'000'000'000;
  late.reply.set_executable("/opt/bin/python");
  const auto result = check_hellos({good("node1"), late}, "/data", "python");
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->warnings,
              ElementsAre(HasSubstr("node2: its clock differs by -600.0 s"),
                          HasSubstr("/opt/bin/python on node2; /usr/bin/python on node1")));
}

TEST(Preflight, HalfASecondOfSkewIsNothing) {
  NodeHello node = good("node1");
  node.realtime_offset_ns = 500'000'000;
  const auto result = check_hellos({node}, "/data", "python");
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->warnings, IsEmpty());
}

}  // namespace
}  // namespace hvd
