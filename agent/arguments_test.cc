#include "agent/arguments.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr std::string_view kJob = "0123456789abcdef0123456789abcdef";

TEST(ParseArguments, TakesAnAgentWithAndWithoutItsJob) {
  const auto plain = parse_arguments({"--stdio"});
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->role, AgentArguments::Role::kServe);
  EXPECT_EQ(plain->marker, "HVDRUN1");
  EXPECT_TRUE(plain->job_id.empty());
  const auto full = parse_arguments({"--stdio", "--job", kJob, "--node", "7", "--cgroup-root",
                                     "none", "--user-scope", "--marker", "M"});
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->job_id, kJob);
  EXPECT_EQ(full->node, 7U);
  EXPECT_EQ(full->cgroup_root, "none");
  EXPECT_TRUE(full->wants_user_scope);
  EXPECT_EQ(full->marker, "M");
}

TEST(ParseArguments, TakesAReapWithItsTimeAndFolder) {
  const auto reap = parse_arguments(
      {"reap", "--job", kJob, "--node", "0", "--grace-ms", "1500", "--job-dir", "/tmp/x"});
  ASSERT_TRUE(reap.has_value());
  EXPECT_EQ(reap->role, AgentArguments::Role::kReap);
  EXPECT_EQ(reap->grace, std::chrono::milliseconds(1500));
  EXPECT_EQ(reap->job_dir, "/tmp/x");
  EXPECT_TRUE(reap->marker.empty()) << "nobody waits for a ready line";
}

TEST(ParseArguments, TakesASocketToServeAt) {
  const auto listening = parse_arguments({"serve", "--listen", "unix:/run/a.sock"});
  ASSERT_TRUE(listening.has_value());
  EXPECT_EQ(listening->role, AgentArguments::Role::kListen);
  EXPECT_EQ(listening->socket, "/run/a.sock");
}

TEST(ParseArguments, RefusesTheRest) {
  const std::vector<std::vector<std::string_view>> wrong = {
      {},
      {"serve"},
      {"serve", "--listen", "/run/a.sock"},
      {"serve", "--listen", "unix:a.sock"},
      {"serve", "--listen", "unix:/run/a.sock", "--job", kJob, "--node", "1"},
      {"--stdio", "--listen", "unix:/run/a.sock"},
      {"reap"},
      {"reap", "--job", kJob},
      {"reap", "--node", "1"},
      {"reap", "--job", "../etc", "--node", "1"},
      {"reap", "--job", kJob, "--node", "-1"},
      {"reap", "--job", kJob, "--node", "1", "--grace-ms", "x"},
      {"--stdio", "--job", kJob},
      {"--stdio", "--marker"},
      {"--stdio", "--marker", ""},
      {"--stdio", "--verbose", "1"},
      {"--stdio", "more"}};
  for (const auto& words : wrong) {
    const auto parsed = parse_arguments(words);
    ASSERT_FALSE(parsed.has_value()) << testing::PrintToString(words);
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_FALSE(parsed.error().message.empty());
  }
}

TEST(IsJobId, IsThirtyTwoHexadecimalDigits) {
  EXPECT_TRUE(is_job_id(kJob));
  EXPECT_FALSE(is_job_id("0123"));
  EXPECT_FALSE(is_job_id("0123456789ABCDEF0123456789ABCDEF"));
  EXPECT_FALSE(is_job_id(""));
}

}  // namespace
}  // namespace hvd
