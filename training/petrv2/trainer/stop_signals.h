// SIGTERM and SIGUSR1 as wishes that the trainer looks at between two steps: TERM to save and end,
// USR1 to save and go on. Thread: install once, on the main thread, before any other exists.
#pragma once

namespace hvd::petrv2 {

void install_stop_signals();

// Whether SIGTERM has come.
[[nodiscard]] bool is_stop_wanted();

// Whether SIGUSR1 has come since the last call.
[[nodiscard]] bool take_save_wish();

}  // namespace hvd::petrv2
