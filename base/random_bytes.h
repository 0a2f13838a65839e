// The system's random bytes, and bytes as text. Thread: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

// Fit for secrets. size: at most 256, so that the system never cuts them short.
[[nodiscard]] Result<std::string> random_bytes(std::size_t size);

// "0f3a", two digits a byte.
[[nodiscard]] std::string hex_of(std::string_view bytes);

}  // namespace hvd
