// What the agent that serves answers to the first line of a connection. Pure.
#pragma once

#include <string>
#include <string_view>

namespace hvd {

struct TlsAnswer {
  enum class Kind {
    kReady,
    kError,
    kWaiting,  // for others: why
    kClaimed,  // what the job needs of the node is its own; it is being started
    kUnknown,  // no answer to us
  };
  Kind kind = Kind::kUnknown;
  std::string text;  // after the word; of kUnknown the whole line
};

// `line` without its end.
[[nodiscard]] TlsAnswer parse_tls_answer(std::string_view line, std::string_view marker);

}  // namespace hvd
