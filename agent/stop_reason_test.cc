#include "agent/stop_reason.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

std::string unit_text(std::string_view cgroups) {
  const auto unit = parse_own_unit(cgroups);
  return unit ? fmt::format("{}{}", unit->is_of_user ? "user " : "", unit->name) : "none";
}

TEST(OwnUnit, IsTheInnermostServiceOfThePath) {
  EXPECT_EQ(unit_text("0::/system.slice/hvd-agent.service\n"), "hvd-agent.service");
  EXPECT_EQ(unit_text("0::/hvdrun.slice/hvd-agent.service/inner/deeper"), "hvd-agent.service");
  EXPECT_EQ(unit_text("0::/system.slice/system-hvd.slice/hvd@a:b.service\n"), "hvd@a:b.service");
  EXPECT_EQ(unit_text("0::/system.slice/_cpu.service\n"), "cpu.service") << "escaped";
}

TEST(OwnUnit, OfCgroupV1AndBoth) {
  constexpr std::string_view kV1 =
      "12:cpu,cpuacct:/system.slice/other.service\n"
      "1:name=systemd:/system.slice/hvd-agent.service\n";
  EXPECT_EQ(unit_text(kV1), "hvd-agent.service");
  EXPECT_EQ(unit_text(std::string(kV1) + "0::/system.slice/second.service\n"), "hvd-agent.service");
  EXPECT_EQ(unit_text("9:name=systemd:/\n1:cpu:/\n0::/system.slice/hvd-agent.service\n"),
            "hvd-agent.service")
      << "a container of v2 on a machine with both";
  EXPECT_EQ(unit_text("4:memory:/system.slice/other.service\n"), "none");
}

TEST(OwnUnit, OfAUsersManager) {
  constexpr std::string_view kManager = "0::/user.slice/user-1000.slice/user@1000.service/";
  EXPECT_EQ(unit_text(std::string(kManager) + "app.slice/hvd-agent.service"),
            "user hvd-agent.service");
  EXPECT_EQ(unit_text(std::string(kManager) + "app.slice/terminal.scope"), "none");
  EXPECT_EQ(unit_text(std::string(kManager) + "init.scope"), "none");
}

TEST(OwnUnit, IsNoneInASessionAContainerAndRubbish) {
  for (const char* text : {"", "0::/\n", "0::/user.slice/user-1000.slice/session-3.scope\n",
                           "0::/docker/0123456789ab\n", "rubbish", "1:2", ":::", "\n\n"}) {
    EXPECT_EQ(unit_text(text), "none") << text;
  }
}

TEST(StopReason, IsTheTypeOfTheUnitsOwnJob) {
  constexpr std::string_view kUnit = "hvd-agent.service";
  const auto reason = [&](std::string_view jobs) { return parse_stop_reason(jobs, kUnit); };
  EXPECT_EQ(reason("1234 hvd-agent.service restart running\n"), StopReason::kRestart);
  EXPECT_EQ(reason("1234 hvd-agent.service try-restart waiting\n"), StopReason::kRestart);
  EXPECT_EQ(reason("1234 hvd-agent.service stop running\n"), StopReason::kStop);
  EXPECT_EQ(reason("  17 nfs.service               stop    running\n"
                   "1234 hvd-agent.service         stop    waiting\n"
                   "   2 poweroff.target           start   waiting"),
            StopReason::kStop);
  EXPECT_EQ(reason("JOB UNIT              TYPE    STATE\n"
                   "12  hvd-agent.service restart running\n\n1 jobs listed.\n"),
            StopReason::kRestart);
}

TEST(StopReason, AnothersJobIsNotOurs) {
  for (const char* jobs :
       {"", "No jobs running.\n", "No jobs listed.\n", "12 other.service restart running\n",
        "12 hvd-agent.service.d restart running\n", "12 hvd-agent restart running\n",
        "12 hvd-agent@1.service restart running\n", "12 hvd-agent.service\n",
        "12 hvd-agent.service start running\n", "12 hvd-agent.service reload running\n",
        "hvd-agent.service restart running\n", "12 other.service restart hvd-agent.service\n",
        "Failed to list jobs: Connection reset by peer\n"}) {
    EXPECT_EQ(parse_stop_reason(jobs, "hvd-agent.service"), StopReason::kUnknown) << jobs;
  }
}

}  // namespace
}  // namespace hvd
