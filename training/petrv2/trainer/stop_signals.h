// Signals as wishes that the trainer looks at between two steps: SIGTERM and SIGINT to save and
// end, SIGUSR1 to save and go on. A second SIGINT ends at once. Thread: install once, on the main
// thread, when all ranks are connected: until then the first two end the process as ever.
#pragma once

namespace hvd::petrv2 {

void install_stop_signals();

// Whether SIGTERM or SIGINT has come.
[[nodiscard]] bool is_stop_wanted();

// Whether SIGINT has come.
[[nodiscard]] bool is_interrupted();

// Whether SIGUSR1 has come since the last call.
[[nodiscard]] bool take_save_wish();

}  // namespace hvd::petrv2
