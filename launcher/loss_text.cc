#include "launcher/loss_text.h"

#include <fmt/format.h>

namespace hvd {
namespace {

constexpr int kLateBeats = 3;

}  // namespace

bool is_silent_for(Nanos silence, Nanos heartbeat) { return silence > kLateBeats * heartbeat; }

std::string connection_end_text(std::string_view why, Nanos silence, Nanos heartbeat) {
  if (!is_silent_for(silence, heartbeat)) return std::string(why);
  return fmt::format("no heartbeat for {}, then {}", format_duration(silence), why);
}

}  // namespace hvd
