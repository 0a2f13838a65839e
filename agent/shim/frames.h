// Frames between agent and shim: 4 bytes of length, little endian, then one protobuf message. A
// decoder takes bytes as they come and hands out whole messages. Pure; any thread.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

inline constexpr std::size_t kMaxFrameBytes = std::size_t{16} << 20U;

// The message must not be larger than kMaxFrameBytes (log chunks are 64 KiB, a spawn is checked by
// the launcher's limits); a larger one gives an empty string.
[[nodiscard]] std::string encode_frame(const google::protobuf::MessageLite& message);

class FrameDecoder {
 public:
  void append(std::string_view bytes);

  // The body of the next whole frame; nothing if more bytes are needed or the stream is broken. The
  // view holds until the next call of either function.
  [[nodiscard]] std::optional<std::string_view> next();

  // A length beyond the limit was announced: the two sides do not speak the same language, and no
  // later byte means anything.
  [[nodiscard]] bool is_broken() const { return is_broken_; }

 private:
  std::string buffer_;
  std::size_t start_ = 0;  // of the bytes not handed out yet
  bool is_broken_ = false;
};

}  // namespace hvd
