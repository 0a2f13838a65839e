// The one line with which a connection begins, and not a byte more of it. Thread: the loop's.
#pragma once

#include <string>

#include "base/loop.h"
#include "base/status.h"

namespace hvd {

// Without its end, from a non-blocking socket. Errors: nothing whole came within `limit`, or in
// `most` bytes, or before the end.
[[nodiscard]] Task<Result<std::string>> await_first_line(Loop& loop, int socket, std::size_t most,
                                                        Nanos limit);

}  // namespace hvd
