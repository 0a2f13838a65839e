// Why this rank ends, for whoever started it: the file that TORCHELASTIC_ERROR_FILE names, in
// torch's form. hvdrun's report quotes it. Any thread, at most once a process.
#pragma once

namespace hvd::petrv2 {

// That somebody sent this process `signal`, after which all ranks have saved and end. Without the
// variable, or if the file cannot be written, nothing is told.
void tell_received_signal(int signal);

}  // namespace hvd::petrv2
