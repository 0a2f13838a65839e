#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace hvd {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kWarning};
std::function<void(LogLevel, std::string_view)>& sink() {
  static std::function<void(LogLevel, std::string_view)> value;
  return value;
}
LogEntryWriter& entry_writer() {
  static LogEntryWriter value;
  return value;
}
std::string& name() {
  static std::string value = "hvdrun";
  return value;
}

std::string_view tag(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error: ";
    case LogLevel::kWarning:
      return "warning: ";
    case LogLevel::kInfo:
    case LogLevel::kDebug:
      return "";
  }
  return "";
}

}  // namespace

void set_log_level(LogLevel level) { g_level = level; }
bool is_logged(LogLevel level) { return level <= g_level.load(std::memory_order_relaxed); }
void set_log_sink(std::function<void(LogLevel, std::string_view)> new_sink) {
  sink() = std::move(new_sink);
}
void set_log_entry_writer(LogEntryWriter writer) { entry_writer() = std::move(writer); }
void set_log_name(std::string new_name) { name() = std::move(new_name); }
const std::string& log_name() { return name(); }

std::string log_line(LogLevel level, std::string_view text) {
  return fmt::format("{}: {}{}", name(), tag(level), text);
}

void write_log(LogLevel level, std::string_view text, const LogFields& fields) {
  if (sink()) return sink()(level, text);
  if (entry_writer()) return entry_writer()(level, text, fields);
  const std::string line = log_line(level, text) + '\n';
  // One write a line: lines of several threads never mix. A reader that has gone is no error here.
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace hvd
