// Where the user wants the run told to programs: --report and --events. Only looks at the file
// system, writes nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

struct Occurrence;

inline constexpr std::string_view kStdoutName = "-";
// Of the name under which a report is written until it is whole, for mkstemp().
inline constexpr std::string_view kTemporaryEnd = ".XXXXXX";

struct RecordRequest {
  std::string report;  // absolute path, "-" for stdout, also as /dev/stdout; empty: none
  std::string events;  // the same
};

[[nodiscard]] Result<void> set_record_option(RecordRequest& request, const Occurrence& it);

// When all options are known: no two in one place, however its name is written, the timeline's file
// (empty: none) included.
[[nodiscard]] Result<void> check_records(const RecordRequest& request, const std::string& timeline);

}  // namespace hvd
