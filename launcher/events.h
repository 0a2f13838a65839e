// --events: the run as it happens, one JSON object a line, for programs. Each line has "time" (UTC,
// ISO 8601 with milliseconds), "monotonic_ms" since the attempt's start and "event"; the others are the
// event's own (docs/report.md).
//
// Writing never blocks the loop and never ends the job: a reader that is slow costs lines, counted
// in the event "dropped", one that has gone or a full disk costs the rest, with one warning.
// Thread: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/loop.h"
#include "base/status.h"
#include "launcher/output_writer.h"

namespace hvd {

// One line with its end. `monotonic`: since the attempt's start. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string event_line(std::string_view event, const nlohmann::ordered_json& fields,
                                     Nanos realtime, Nanos monotonic);

// "2026-01-31T16:05:59.123Z" of a wall clock time.
[[nodiscard]] std::string utc_text(Nanos realtime);

// Opens what --events names: a file anew, a pipe or device as it is. A pipe that nobody reads is an
// error of usage. The descriptor stays open for the life of the process.
[[nodiscard]] Result<int> open_events(const std::string& path);

class EventLog {
 public:
  using Print = std::function<void(std::string line)>;

  // `fd` of open_events().
  EventLog(Loop& loop, int fd);
  // Lines go where the workers' standard output goes.
  explicit EventLog(Print print);

  void emit(std::string_view event, const nlohmann::ordered_json& fields);

  // Waits until all is written; false if the deadline came first.
  [[nodiscard]] Task<bool> flush(SteadyTime deadline);

 private:
  void write(std::string line);

  const Nanos start_ = boottime_now();
  const Print print_;
  std::unique_ptr<OutputWriter> writer_;
  std::uint64_t num_dropped_ = 0;
};

}  // namespace hvd
