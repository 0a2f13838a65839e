#include "base/random_bytes.h"

#include <sys/random.h>

namespace hvd {

Result<std::string> random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    return make_error("the system gives no random bytes");
  }
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace hvd
