#include "agent/kernel_view.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "agent/rank_family.h"
#include "base/lines.h"
#include "base/parse_number.h"
#include "base/plural.h"
#include "base/process_state.h"
#include "base/read_file.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxProcesses = 16;
constexpr std::size_t kMaxThreads = 512;
constexpr std::size_t kMaxGroups = 16;
constexpr std::size_t kMaxFrames = 6;

// Those in which processes wait; others are told by number alone.
constexpr std::pair<long, std::string_view> kNames[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_statx, "statx"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_futex, "futex"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_exit_group, "exit_group"},
#ifdef SYS_poll  // the older calls, which newer architectures do not have
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_pause, "pause"},
    {SYS_open, "open"},
    {SYS_epoll_wait, "epoll_wait"},
#endif
};

std::vector<std::string> split_lines(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < most) lines.emplace_back(take_line(text));
  return lines;
}

// "[<0>] futex_wait_queue+0x63/0x90" -> "futex_wait_queue+0x63/0x90".
std::string_view frame_of(std::string_view line) {
  const std::size_t at = line.find("] ");
  return at == std::string_view::npos ? line : line.substr(at + 2);
}

std::string waiting_text(const ThreadView& thread) {
  std::string text = process_state_text({&thread.state, 1});
  if (!thread.wait_channel.empty() && thread.wait_channel != "0") {
    text += " in " + thread.wait_channel;
  }
  const std::string call = system_call_text(thread.system_call);
  return call.empty() ? text : text + ", " + call;
}

ThreadView read_thread(const std::string& folder, pid_t thread) {
  ThreadView view;
  const auto stat = parse_stat(read_small_file(folder + "/stat"));
  if (stat && stat->pid == thread) view.state = stat->state;
  view.wait_channel = read_small_file(folder + "/wchan");
  view.system_call = read_first_line(folder + "/syscall");
  view.stack = split_lines(read_small_file(folder + "/stack"), kMaxFrames);
  return view;
}

std::vector<ThreadView> read_threads(pid_t process) {
  std::vector<ThreadView> threads;
  const std::string tasks = fmt::format("/proc/{}/task", process);
  for (const pid_t thread : numbers_in(tasks)) {
    if (threads.size() == kMaxThreads) break;
    threads.push_back(read_thread(fmt::format("{}/{}", tasks, thread), thread));
  }
  return threads;
}

}  // namespace

std::string system_call_text(std::string_view line) {
  const auto number = parse_number<long>(line.substr(0, line.find(' ')));
  if (!number || *number < 0) return "";
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const auto& entry) { return entry.first == *number; });
  if (found == std::end(kNames)) return fmt::format("syscall {}", *number);
  return fmt::format("syscall {} ({})", found->second, *number);
}

std::string describe_process(const ProcStat& process, const std::vector<ThreadView>& threads) {
  std::string text =
      fmt::format("{} (pid {}), {}, {}\n", process.comm, process.pid,
                  process_state_text({&process.state, 1}), counted(threads.size(), "thread"));
  std::map<std::pair<std::string, std::vector<std::string>>, std::size_t> groups;
  std::vector<decltype(groups)::const_iterator> order;
  for (const ThreadView& thread : threads) {
    const auto [group, is_new] = groups.try_emplace({waiting_text(thread), thread.stack}, 0);
    ++group->second;
    if (is_new) order.push_back(group);
  }
  for (std::size_t i = 0; i < std::min(order.size(), kMaxGroups); ++i) {
    const auto& [what, count] = *order[i];
    text += fmt::format("  {}: {}\n", counted(count, "thread"), what.first);
    for (const std::string& line : what.second) text += fmt::format("    {}\n", frame_of(line));
  }
  if (order.size() > kMaxGroups) {
    text += fmt::format("  and {} other states\n", order.size() - kMaxGroups);
  }
  return text;
}

std::string describe_rank(pid_t leader) {
  const std::vector<ProcStat> table = read_process_table();
  const auto families = find_families(table, {leader});
  const auto found = families.find(leader);
  if (found == families.end()) return fmt::format("process {} has gone\n", leader);
  std::string text;
  for (std::size_t i = 0; i < std::min(found->second.size(), kMaxProcesses); ++i) {
    const ProcStat& process = *found->second[i];
    text += describe_process(process, read_threads(process.pid));
  }
  if (found->second.size() > kMaxProcesses) {
    text += fmt::format("and {} processes more\n", found->second.size() - kMaxProcesses);
  }
  return text;
}

}  // namespace hvd
