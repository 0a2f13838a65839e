#include <array>

#include "launcher/transport/transport.h"

namespace hvd {

const char* phase_name(Phase phase) {
  static constexpr std::array kNames = {
      "waiting",     "resolve",     "connect", "authenticate", "wait for its turn",
      "place agent", "start agent", "hello",   "stage",        "fabric",
      "spawn",       "running"};
  static_assert(kNames.size() == static_cast<std::size_t>(Phase::kRunning) + 1);
  return kNames[static_cast<std::size_t>(phase)];
}

}  // namespace hvd
