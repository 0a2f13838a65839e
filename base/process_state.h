// "stopped (T)": what the letter of /proc/PID/stat means to a user.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hvd {

// Empty for an empty text: the process is not known or has gone.
[[nodiscard]] inline std::string process_state_text(std::string_view state) {
  if (state.empty()) return "";
  const char letter = state.front();
  const char* meaning = letter == 'T' || letter == 't' ? "stopped"
                        : letter == 'D'                ? "in uninterruptible sleep"
                        : letter == 'Z'                ? "a zombie"
                        : letter == 'R'                ? "computing"
                        : letter == 'S'                ? "sleeping"
                                                       : "in another state";
  return fmt::format("{} ({})", meaning, letter);
}

}  // namespace hvd
