#include "launcher/timeline/trace_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>

namespace hvd {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTimeFirst = "{\"ts\":";

std::string_view without_ends(std::string_view line) {
  const auto is_end = [](char c) { return c == ' ' || c == '\r' || c == ',' || c == '\t'; };
  while (!line.empty() && is_end(line.back())) line.remove_suffix(1);
  while (!line.empty() && is_end(line.front())) line.remove_prefix(1);
  return line;
}

Nanos from_micros(const Json& value) {
  return value.is_number() ? Nanos(std::llround(value.get<double>() * 1000)) : Nanos::zero();
}

std::string to_micros(Nanos time) {
  const auto count = time.count();
  return fmt::format("{}{}.{:03}", count < 0 ? "-" : "", std::abs(count / 1000),
                     std::abs(count % 1000));
}

bool is_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number();
}

// False if it is not one of the rank's own events.
bool add_line(const Json& event, TraceLine line, std::uint32_t rank, TraceIndex& index) {
  if (!event.is_object() || !event.contains("ph") || !is_number(event, "pid")) return false;
  if (event["pid"] != rank) return false;
  if (is_number(event, "tid")) line.thread = event["tid"].get<std::int64_t>();
  if (event["ph"] == "M") {
    index.metadata.push_back(line);
    const Json args = event.value("args", Json::object());
    if (event.value("name", Json()) != "clock" || !args.is_object()) return true;
    if (!is_number(args, "boottime_ns")) return true;
    index.start = Nanos(args["boottime_ns"].get<std::int64_t>());
    index.has_clock = true;
    return true;
  }
  if (!is_number(event, "ts")) return false;
  line.at = from_micros(event["ts"]);
  if (const auto duration = event.find("dur"); duration != event.end()) {
    line.duration = from_micros(*duration);
  }
  index.events.push_back(line);
  return true;
}

bool comes_before(const TraceLine& a, const TraceLine& b) {
  return std::tuple(a.thread, a.at, -a.duration, a.offset) <
         std::tuple(b.thread, b.at, -b.duration, b.offset);
}

}  // namespace

TraceIndex index_trace(std::string_view text, std::uint32_t rank) {
  TraceIndex index;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_ends(text.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line == "[" || line == "]") continue;
    TraceLine place;
    place.offset = static_cast<std::uint64_t>(line.data() - text.data());
    place.num_bytes = static_cast<std::uint32_t>(line.size());
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_discarded() || !add_line(event, place, rank, index)) ++index.num_unreadable;
  }
  std::sort(index.events.begin(), index.events.end(), comes_before);
  return index;
}

Nanos trace_shift(Nanos file_start, Nanos to_launcher, Nanos job_start) {
  return file_start + to_launcher - job_start;
}

// The usual line begins with its time, which can be cut out; others are put together anew.
std::string moved_line(std::string_view text, const TraceLine& line, Nanos shift) {
  const std::string_view old = text.substr(line.offset, line.num_bytes);
  const std::string time = to_micros(line.at + shift);
  const std::size_t comma = old.find(',');
  if (old.starts_with(kTimeFirst) && comma != std::string_view::npos) {
    return fmt::format("{}{}{}", kTimeFirst, time, old.substr(comma));
  }
  Json event = Json::parse(old, nullptr, false);
  event["ts"] = std::strtod(time.c_str(), nullptr);
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hvd
