// Diagnostics of our own programs: one line to stderr, to the journal (base/journal.h), or to a
// sink that the program sets (the agent sends its lines to the launcher). Levels follow -v and -vv.
// Thread safe.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shown.h"

namespace hvd {

enum class LogLevel { kError, kWarning, kInfo, kDebug };  // kInfo: -v, kDebug: -vv

// What a line is about, for who looks for it: a field of the journal's entry. Nowhere else is it
// printed, because the text says it too.
struct LogField {
  std::string_view name;  // A-Z, 0-9 and _, from a letter on: HVDRUN_JOB
  std::string value;      // any bytes
};
using LogFields = std::vector<LogField>;

void set_log_level(LogLevel level);
[[nodiscard]] bool is_logged(LogLevel level);

// Replaces stderr. The line has no newline at its end. Set before any thread exists.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

// In place of stderr, where no sink is set. Set before any thread exists; called on any.
using LogEntryWriter = std::function<void(LogLevel, std::string_view, const LogFields&)>;
void set_log_entry_writer(LogEntryWriter writer);

// "hvdrun: " in front of each line; set once by main.
void set_log_name(std::string name);
[[nodiscard]] const std::string& log_name();

void write_log(LogLevel level, std::string_view text, const LogFields& fields = {});

// "hvdrun: warning: text", without a line end: the line that goes to stderr.
[[nodiscard]] std::string log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_logged(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...));
}

// A line with fields. The text may hold words of strangers: it is written as shown() shows it, and
// is one line whatever they sent.
template <typename... Args>
void log_with(LogLevel level, const LogFields& fields, fmt::format_string<Args...> format,
              Args&&... args) {
  if (is_logged(level)) {
    write_log(level, shown(fmt::format(format, std::forward<Args>(args)...)), fields);
  }
}

}  // namespace hvd
