// What the letter of /proc/PID/stat means.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hvd {

// By a signal, or by a tracer.
[[nodiscard]] constexpr bool is_stopped_state(char letter) {
  return letter == 'T' || letter == 't';
}
// The same of a letter that travelled as text.
[[nodiscard]] constexpr bool is_stopped_state(std::string_view state) {
  return !state.empty() && is_stopped_state(state.front());
}

// "stopped (T)", for a user. Empty for an empty text: the process is not known or has gone.
[[nodiscard]] inline std::string process_state_text(std::string_view state) {
  if (state.empty()) return "";
  const char letter = state.front();
  const char* meaning = is_stopped_state(letter) ? "stopped"
                        : letter == 'D'          ? "in uninterruptible sleep"
                        : letter == 'Z'          ? "a zombie"
                        : letter == 'R'          ? "computing"
                        : letter == 'S'          ? "sleeping"
                                                 : "in another state";
  return fmt::format("{} ({})", meaning, letter);
}

}  // namespace hvd
