// Words of a stranger (a peer, a certificate, an outside program) within a line of ours, in a log
// or a status: nothing in them ends the line, moves a cursor or hides. Pure.
#pragma once

#include <string>
#include <string_view>

namespace hvd {

// Printable ASCII and valid UTF-8 as they are; control characters, line ends and tabs among them,
// what turns the direction of text, and bytes that are no UTF-8 as "\x0a". A backslash stays one:
// the text is for reading, not for reading back.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace hvd
