// Bytes of a worker as they may be shown on a terminal, also later, from a log. Text, tabs and
// colours pass; what could move the cursor, set the title, reach the clipboard or talk to the
// terminal becomes visible: "\x1b". Pure.
#pragma once

#include <string>
#include <string_view>

namespace hvd {

// Appends one line, or a part of one, without its line end. Colours are reset at its end.
void append_visible(std::string& out, std::string_view line);

// "  | line" with its end, as reports quote a worker.
void append_quoted(std::string& out, std::string_view line);

}  // namespace hvd
