// The first line on a connection to an agent that runs already: "MARK WORD WORD...", the marker of
// this start and the words that a fresh agent would be started with. It takes the place of the boot
// script; the answer is the same line, "MARK ready VERSION" or "MARK error TEXT". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/arguments.h"

namespace hvd {

struct Greeting {
  std::vector<std::string> words;  // "--stdio" or "reap", and what belongs to it
  AgentArguments arguments;        // the same, understood; with the marker
};

// The longest line that is read.
inline constexpr std::size_t kMaxGreetingBytes = 4096;

// `line` without its end. Nothing if it makes no sense: unlike a fresh agent, one that serves
// several jobs must be told which one this is.
[[nodiscard]] std::optional<Greeting> parse_greeting(std::string_view line);

}  // namespace hvd
