// Writing to a descriptor, and the sentence that says why it did not work. Stateless.
//
// A process that writes files ignores SIGXFSZ (its main() says so), which would otherwise kill it
// where a limit on file sizes (ulimit -f) is to be told as an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

// Writes everything. The errno of what stopped it, or 0.
[[nodiscard]] int write_all(int fd, std::string_view bytes);

// Makes the names in the folder that holds `path` durable. errno or 0.
[[nodiscard]] int sync_folder_of(const std::string& path);

// "cannot write PATH: No space left on device (100 bytes needed, 10 free); free some space or ...".
// The free bytes are those of the file system of the folder now.
[[nodiscard]] Error write_error(const std::string& path, int errno_value,
                                std::uint64_t num_bytes_needed);

}  // namespace hvd
