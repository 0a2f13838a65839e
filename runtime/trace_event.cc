#include "runtime/trace_event.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/json_array_file.h"

namespace hvd {
namespace {

using Json = nlohmann::json;

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// On one line, whatever the caller's text looks like.
std::string args_field(std::string_view args) {
  if (args.empty()) return "";
  const Json parsed = Json::parse(args, nullptr, false);
  const bool is_object = !parsed.is_discarded() && parsed.is_object();
  return fmt::format(",\"args\":{}", dump(is_object ? parsed : Json{{"text", std::string(args)}}));
}

std::string micros(Nanos time) {
  const auto count = time.count();
  const auto size =
      count < 0 ? -static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  return fmt::format("{}{}.{:03}", count < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string place_fields(TracePlace place, std::string_view name) {
  return fmt::format("\"name\":{},\"pid\":{},\"tid\":{}", json_string(name), place.rank,
                     place.thread());
}

std::string metadata_line(TracePlace place, std::string_view kind, const Json& args) {
  return fmt::format("{{\"ph\":\"M\",{},\"args\":{}}}", place_fields(place, kind), dump(args));
}

}  // namespace

std::string json_string(std::string_view text) { return dump(Json(std::string(text))); }

std::string span_line(TracePlace place, std::string_view name, Nanos at, Nanos duration,
                      std::string_view args) {
  return fmt::format("{{\"ts\":{},\"ph\":\"X\",\"dur\":{},{}{}}}", micros(at),
                     micros(std::max(duration, Nanos::zero())), place_fields(place, name),
                     args_field(args));
}

std::string instant_line(TracePlace place, std::string_view name, Nanos at, std::string_view args) {
  return fmt::format("{{\"ts\":{},\"ph\":\"i\",\"s\":\"t\",{}{}}}", micros(at),
                     place_fields(place, name), args_field(args));
}

std::string track_name_line(TracePlace place, std::string_view name) {
  return metadata_line(place, "thread_name", {{"name", std::string(name)}});
}

std::string header_lines(int rank, std::string_view host, Nanos boottime, Nanos realtime) {
  const TracePlace place{rank, -1};
  const Json process = {{"name", fmt::format("rank {} on {}", rank, host)}};
  const Json clock = {{"boottime_ns", boottime.count()},
                      {"start_time_since_epoch_in_micros", realtime.count() / 1000}};
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}", JsonArrayFile::kSeparator,
                     metadata_line(place, "process_name", process),
                     metadata_line(place, "process_sort_index", {{"sort_index", rank}}),
                     metadata_line(place, "clock", clock), track_name_line(place, "steps"));
}

}  // namespace hvd
