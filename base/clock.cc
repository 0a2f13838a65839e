#include "base/clock.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <time.h>

#include <string_view>

#include "base/parse_number.h"

namespace hvd {
namespace {

Nanos read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

// For tests of nodes whose clock is wrong or jumps, because no program can be given a wall clock of
// its own: HVDRUN_TEST_CLOCK="SECONDS" from the start on, "SECONDS@AFTER" from so many seconds of
// this process on.
struct WrongClock {
  Nanos offset{0};
  Nanos since{0};  // CLOCK_MONOTONIC
};

WrongClock wrong_clock(std::string_view text) {
  const std::size_t at = text.find('@');
  const auto offset = parse_number<int>(text.substr(0, at));
  const auto after = parse_number<int>(at == std::string_view::npos ? "0" : text.substr(at + 1));
  if (!offset || !after) return {};
  return {std::chrono::seconds(*offset),
          read_clock(CLOCK_MONOTONIC) + std::chrono::seconds(*after)};
}

Nanos test_offset() {
  static const char* const text = getenv("HVDRUN_TEST_CLOCK");
  if (text == nullptr) return Nanos(0);
  static const WrongClock clock = wrong_clock(text);
  return monotonic_now() >= clock.since ? clock.offset : Nanos(0);
}

}  // namespace

Nanos boottime_now() { return read_clock(CLOCK_BOOTTIME); }

Nanos monotonic_now() { return read_clock(CLOCK_MONOTONIC); }

Nanos realtime_now() { return read_clock(CLOCK_REALTIME) + test_offset(); }

std::string format_time_of_day(Nanos realtime) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(realtime);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(realtime - seconds);
  const time_t t = seconds.count();
  tm local{};
  localtime_r(&t, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", local.tm_hour, local.tm_min, local.tm_sec,
                     millis.count());
}

std::string format_duration(Nanos duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds < 0.01) return fmt::format("{:.3f} s", seconds);
  if (seconds < 10) return fmt::format("{:.2g} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<long>(seconds);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace hvd
