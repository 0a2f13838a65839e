// What a worker has left in TORCHELASTIC_ERROR_FILE, in torch's form: {"message": TEXT} or
// {"message": {"message": TEXT, "extraInfo": {"py_callstack": TEXT, ...}}}. hvdrun's own trainer
// adds "signal": N to extraInfo when it ends because somebody sent it that signal. Pure; of
// anything else nothing is told.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// The traceback, or else the message; empty if there is none.
[[nodiscard]] std::string traceback_in(std::string_view error_file);
// Its lines, blank ones folded.
[[nodiscard]] std::vector<std::string> traceback_lines(std::string_view error_file);

// 0: none is named.
[[nodiscard]] int received_signal_in(std::string_view error_file);

}  // namespace hvd
