// Events of the Chrome trace format as lines of text, each one JSON object. Pure.
//
// Where a line has a time, it stands first ({"ts":12.345,): who lays traces over each other can
// change it without knowing the rest. Times are microseconds with three decimals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hvd {

// Where an event stands: the process is the rank, the thread a track.
struct TracePlace {
  int rank = 0;
  int track = 0;  // kStepTrack (-1) or a bucket's index

  [[nodiscard]] int thread() const { return track + 1; }
};

// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

// `at`: since the start of the file. `args`: JSON object text; anything else is kept as its text.
[[nodiscard]] std::string span_line(TracePlace place, std::string_view name, Nanos at,
                                    Nanos duration, std::string_view args);
[[nodiscard]] std::string instant_line(TracePlace place, std::string_view name, Nanos at,
                                       std::string_view args);

[[nodiscard]] std::string track_name_line(TracePlace place, std::string_view name);

// The head of a rank's file: its name, its place among the ranks, and what its clocks showed at
// time 0: CLOCK_BOOTTIME for us, wall clock under Horovod's name.
[[nodiscard]] std::string header_lines(int rank, std::string_view host, Nanos boottime,
                                       Nanos realtime);

}  // namespace hvd
