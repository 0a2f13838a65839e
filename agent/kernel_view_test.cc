#include "agent/kernel_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hvd {
namespace {

using testing::HasSubstr;

TEST(KernelView, SystemCallsHaveTheirNumberAndMostlyTheirName) {
  EXPECT_EQ(system_call_text(fmt::format("{} 0x7f 0x80 0x0", SYS_futex)),
            fmt::format("syscall futex ({})", SYS_futex));
  EXPECT_EQ(system_call_text("99999 0x0"), "syscall 99999");
  for (const char* none : {"running", "-1 0x7ffc 0x7f", "", "x 1"}) {
    EXPECT_EQ(system_call_text(none), "") << none;
  }
}

TEST(KernelView, ThreadsThatWaitAlikeAreToldOnce) {
  ProcStat process;
  process.pid = 4711;
  process.comm = "python";
  process.state = 'S';
  const ThreadView waiting{'S',
                           "futex_wait_queue",
                           fmt::format("{} 0x7f", SYS_futex),
                           {"[<0>] futex_wait_queue+0x63/0x90", "[<0>] do_syscall_64+0x55/0xb0"}};
  const ThreadView running{'R', "0", "running", {}};
  EXPECT_EQ(describe_process(process, {running, waiting, waiting}),
            fmt::format("python (pid 4711), sleeping (S), 3 threads\n"
                        "  1 thread: computing (R)\n"
                        "  2 threads: sleeping (S) in futex_wait_queue, syscall futex ({})\n"
                        "    futex_wait_queue+0x63/0x90\n"
                        "    do_syscall_64+0x55/0xb0\n",
                        SYS_futex));
}

TEST(KernelView, ManyStatesAreCounted) {
  ProcStat process;
  std::vector<ThreadView> threads;
  for (int i = 0; i < 20; ++i) threads.push_back({'S', fmt::format("f{}", i), "", {}});
  EXPECT_THAT(describe_process(process, threads), HasSubstr("  and 4 other states\n"));
}

TEST(KernelView, ReadsAProcess) {
  EXPECT_THAT(describe_rank(getpid()), HasSubstr(fmt::format("(pid {}), ", getpid())));
  EXPECT_THAT(describe_rank(1 << 30), HasSubstr("has gone"));
}

}  // namespace
}  // namespace hvd
