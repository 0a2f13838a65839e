#include "base/clock.h"

#include <fmt/format.h>
#include <time.h>

namespace hvd {
namespace {

Nanos read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

}  // namespace

Nanos boottime_now() { return read_clock(CLOCK_BOOTTIME); }

Nanos monotonic_now() { return read_clock(CLOCK_MONOTONIC); }

Nanos realtime_now() { return read_clock(CLOCK_REALTIME); }

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
