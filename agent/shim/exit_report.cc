#include "agent/shim/exit_report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read_file.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxErrorFile = 65536;

// Opens `relative` one component at a time, so that no link on the way leads elsewhere: in service
// mode we are root and the folder is the user's.
UniqueFd open_below(const std::string& dir, std::string_view relative) {
  UniqueFd at(open(dir.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  while (at.is_valid() && !relative.empty()) {
    const std::size_t slash = relative.find('/');
    const std::string name(relative.substr(0, slash));
    const bool is_last = slash == std::string_view::npos;
    relative = is_last ? std::string_view{} : relative.substr(slash + 1);
    if (name.empty() || name == ".") continue;
    if (name == "..") return {};
    const int flags = is_last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    at.reset(openat(at.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  }
  return at;
}

// As core(5) has it, with the number that the kernel adds by another setting.
std::string core_pattern() {
  std::string pattern = read_first_line("/proc/sys/kernel/core_pattern");
  const bool has_pid = pattern.starts_with('|') || pattern.find("%p") != std::string::npos;
  if (!has_pid && read_first_line("/proc/sys/kernel/core_uses_pid") != "0") pattern += ".%p";
  return pattern;
}

}  // namespace

std::string read_below(const std::string& dir, std::string_view path) {
  if (dir.empty() || path.size() <= dir.size() || !path.starts_with(dir) ||
      path[dir.size()] != '/') {
    return {};
  }
  const UniqueFd fd = open_below(dir, path.substr(dir.size() + 1));
  struct stat status {};
  if (!fd.is_valid() || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string content(kMaxErrorFile, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t n = read(fd.get(), content.data() + size, content.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  content.resize(size);
  return content;
}

hvdrun::v1::ExitReport report_ending(const Worker& worker, const Ending& ending,
                                     const std::string& job_dir) {
  hvdrun::v1::ExitReport report;
  report.set_rank(worker.rank);
  report.set_pid(worker.pid);
  report.set_stopped(ending.is_stopping);
  report.set_stood_still(worker.stood_still);
  report.set_time_ns(ending.time.count());
  report.set_max_rss_kib(ending.usage.ru_maxrss);
  const int status = ending.info.si_status;
  if (ending.info.si_code == CLD_EXITED) {
    report.set_exited(status);
  } else {
    report.set_signalled(status);
    report.set_core_dumped(ending.info.si_code == CLD_DUMPED);
    if (report.core_dumped()) {
      report.set_core_pattern(core_pattern());
    }
    if (status == SIGKILL) *report.mutable_oom() = ending.oom;
    report.set_signal_was_ours(worker.was_sent(status) || (status == SIGKILL && ending.was_swept));
  }
  report.set_error_file(read_below(job_dir, worker.error_file));
  return report;
}

hvdrun::v1::ExitReport report_failed_start(const Worker& worker, bool is_stopping, Nanos time) {
  hvdrun::v1::ExitReport report;
  report.set_rank(worker.rank);
  report.set_pid(worker.pid);
  report.set_stopped(is_stopping);
  report.set_time_ns(time.count());
  report.mutable_failed_to_start()->set_stage(worker.failure.stage);
  report.mutable_failed_to_start()->set_errno_value(worker.failure.errno_value);
  return report;
}

}  // namespace hvd
