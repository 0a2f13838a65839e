// Diagnostics of our own programs: one line to stderr, or to a sink that the program sets (the
// agent sends its lines to the launcher). Levels follow -v and -vv. Thread safe.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace hvd {

enum class LogLevel { kError, kWarning, kInfo, kDebug };  // kInfo: -v, kDebug: -vv

void set_log_level(LogLevel level);
[[nodiscard]] bool is_logged(LogLevel level);

// Replaces stderr. The line has no newline at its end. Set before any thread exists.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

// "hvdrun: " in front of each line; set once by main.
void set_log_name(std::string name);

void write_log(LogLevel level, std::string_view text);

// "hvdrun: warning: text", without a line end: the line that goes to stderr.
[[nodiscard]] std::string log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_logged(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hvd
