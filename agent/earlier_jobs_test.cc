#include "agent/earlier_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace hvd {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

constexpr std::string_view kMarkedJob = "0123456789abcdef0123456789abcdef";
const JobMark kMark{std::string(kMarkedJob), 1};

ProcStat process(pid_t pid, pid_t parent) {
  ProcStat stat;
  stat.pid = pid;
  stat.ppid = parent;
  stat.state = 'S';
  stat.comm = "sleep";
  return stat;
}

std::vector<pid_t> pids_of(const MarkedProcesses& groups, const JobMark& mark) {
  std::vector<pid_t> pids;
  const auto found = groups.find(mark);
  if (found == groups.end()) return pids;
  for (const ProcStat& member : found->second) pids.push_back(member.pid);
  return pids;
}

TEST(MarkIn, NeedsBothVariablesAsHvdrunMakesThem) {
  const std::string job = "HVDRUN_JOB_ID=" + std::string(kMarkedJob);
  EXPECT_EQ(mark_in("A=1\0"s + job + "\0HVDRUN_NODE=1\0B=\0"s), kMark);
  EXPECT_EQ(mark_in("HVDRUN_NODE=1\0"s + job), kMark);
  for (const std::string& none :
       {std::string(), job, "HVDRUN_NODE=1"s, job + "\0HVDRUN_NODE=x"s, job + "0\0HVDRUN_NODE=1"s,
        "HVDRUN_JOB_ID=../x\0HVDRUN_NODE=1"s, "X" + job + "\0HVDRUN_NODE=1"s}) {
    EXPECT_EQ(mark_in(none), std::nullopt) << none;
  }
}

TEST(GroupByMark, PutsTheProcessesOfEachJobTogether) {
  ProcStat dead = process(13, 1);
  dead.state = 'Z';
  const auto groups = group_by_mark({process(10, 1), process(11, 1), process(12, 1), dead}, 99,
                                    [](const ProcStat& stat) -> std::optional<JobMark> {
                                      if (stat.pid == 11) return std::nullopt;
                                      return kMark;
                                    });
  EXPECT_THAT(groups, ElementsAre(Pair(kMark, testing::SizeIs(2))));
  EXPECT_THAT(pids_of(groups, kMark), ElementsAre(10, 12));
}

TEST(GroupByMark, LeavesOutWhoAsksWithAncestorsAndDescendants) {
  // 10 is a shell of an earlier job, from which 20 was started; 21 is our shim.
  const std::vector<ProcStat> table = {process(10, 1), process(20, 10), process(21, 20),
                                       process(22, 10)};
  const auto groups = group_by_mark(table, 20, [](const ProcStat&) { return kMark; });
  EXPECT_THAT(pids_of(groups, kMark), ElementsAre(22));
}

TEST(DescribeEarlierJob, TellsWhoIsThereAndWhatEndsThem) {
  ProcStat self = process(getpid(), 1);
  self.start_time = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)) * 100;
  const auto text_of = [&self](std::optional<Nanos> since, std::uint64_t gpu_mib) {
    return describe_earlier_job({kMark, {self}, since, gpu_mib}, std::chrono::seconds(282),
                                "/x/hvd-agent");
  };
  const std::string text = text_of(std::nullopt, 0);
  EXPECT_THAT(text,
              HasSubstr("1 process of an earlier job, whose agent and shim have gone, still"));
  EXPECT_THAT(text, Not(HasSubstr("GPU")));
  EXPECT_THAT(text_of(std::chrono::seconds(192), 12390),
              AllOf(HasSubstr("have gone (last sign 3 min 12 s ago), still here"),
                    HasSubstr("; GPU memory held: 12.1 GiB; left alone")));
  EXPECT_THAT(text, HasSubstr(fmt::format("(pid {}, for 3 min 2 s)", getpid())));
  EXPECT_THAT(
      text, testing::EndsWith("/x/hvd-agent reap --job " + std::string(kMarkedJob) + " --node 1"));
}

TEST(DescribeEarlierJob, IsShortAndPrintableWhateverTheyAreCalled) {
  std::vector<ProcStat> many(7, process(1 << 30, 1));
  many.front().comm = "a\033[2J\xff\n";
  const std::string text = describe_earlier_job({kMark, many, {}, 0}, Nanos(0), "/x");
  EXPECT_THAT(text, HasSubstr("7 processes of"));
  EXPECT_THAT(text, HasSubstr("a?[2J?? (pid"));
  EXPECT_THAT(text, HasSubstr(", 3 more; left alone"));
}

TEST(FindEarlierJobs, TellsAProcessThatHasNeitherAgentNorShimUntilItEnds) {
  const JobMark mark{fmt::format("{:032x}", getpid()), 7};
  const std::string start =
      fmt::format("HVDRUN_JOB_ID={} HVDRUN_NODE=7 setsid -f sleep 30 >/dev/null 2>&1", mark.job_id);
  ASSERT_EQ(std::system(start.c_str()), 0);
  MarkedProcesses found = find_earlier_jobs();
  for (int i = 0; i < 200 && found[mark].empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until it is executed
    found = find_earlier_jobs();
  }
  ASSERT_EQ(found[mark].size(), 1U);
  const pid_t pid = found[mark].front().pid;
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  for (int i = 0; i < 200 && find_earlier_jobs().contains(mark); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(find_earlier_jobs().contains(mark));
}

}  // namespace
}  // namespace hvd
