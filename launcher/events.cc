#include "launcher/events.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "launcher/shell_words.h"
#include "launcher/watch_records.h"

namespace hvd {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxQueued = 4U << 20U;  // bytes that wait for a slow reader
constexpr mode_t kFileMode = 0666;

void warn_broken(int error) {
  write_log(LogLevel::kWarning,
            fmt::format("--events cannot be written any more: {}; the job goes on without it",
                        error == EPIPE ? "its reader has gone" : std::strerror(error)));
}

}  // namespace

std::string utc_text(Nanos realtime) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(realtime);
  const time_t seconds = whole.count();
  struct tm parts {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     to_ms(realtime - whole));
}

std::string event_line(std::string_view event, const ordered_json& fields, Nanos realtime,
                       Nanos monotonic) {
  ordered_json line = {
      {"time", utc_text(realtime)}, {"monotonic_ms", to_ms(monotonic)}, {"event", event}};
  if (fields.is_object()) line.update(fields);
  return json_text(line) + '\n';
}

Result<int> open_events(const std::string& path) {
  // Without O_NONBLOCK a pipe would be waited for until somebody reads it.
  const int fd = ::open(path.c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                        kFileMode);
  if (fd < 0) {
    return make_error(
        ExitCode::kUsage, "--events {}: {}", show(path),
        errno == ENXIO ? "nobody reads this pipe; start its reader first" : std::strerror(errno));
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);  // the writer has a thread for it
  return fd;
}

EventLog::EventLog(Loop& loop, int fd)
    : writer_(std::make_unique<OutputWriter>(loop, fd, fd,
                                             [](bool, int error) { warn_broken(error); })) {}

EventLog::EventLog(Print print) : print_(std::move(print)) {}

void EventLog::emit(std::string_view event, const ordered_json& fields) {
  if (writer_ && writer_->num_queued() > kMaxQueued) {
    ++num_dropped_;
    return;
  }
  const Nanos since = boottime_now() - start_;
  if (num_dropped_ > 0) {
    const ordered_json lost = {{"lines", std::exchange(num_dropped_, 0)}};
    write(event_line("dropped", lost, realtime_now(), since));
  }
  write(event_line(event, fields, realtime_now(), since));
}

void EventLog::write(std::string line) {
  if (print_) return print_(std::move(line));
  writer_->submit({{.is_stderr = false, .bytes = std::move(line)}}, {});
}

Task<bool> EventLog::flush(SteadyTime deadline) {
  if (!writer_) co_return true;
  const bool is_written = co_await writer_->flush(deadline);
  co_return is_written;
}

}  // namespace hvd
