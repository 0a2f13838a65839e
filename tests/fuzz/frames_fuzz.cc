// Frames between agent and shim: whatever comes, and in whatever pieces, the bodies come out that
// the format says, up to a length beyond the limit; and a message that was sent comes back as it
// was.
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/shim/frames.h"

namespace {

void require(bool is_true) {
  if (!is_true) std::abort();
}

struct Decoded {
  std::vector<std::string> bodies;
  bool is_broken = false;
  bool operator==(const Decoded&) const = default;
};

Decoded decode(std::string_view bytes, std::size_t piece) {
  Decoded decoded;
  hvd::FrameDecoder decoder;
  while (!bytes.empty()) {
    decoder.append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (const auto body = decoder.next()) decoded.bodies.emplace_back(*body);
  }
  decoded.is_broken = decoder.is_broken();
  return decoded;
}

// The same by the description of the format.
Decoded expected(std::string_view bytes) {
  constexpr std::size_t kHeader = 4;
  Decoded decoded;
  while (bytes.size() >= kHeader) {
    std::size_t length = 0;
    for (std::size_t i = kHeader; i > 0; --i) {
      length = length * 256 + static_cast<unsigned char>(bytes[i - 1]);
    }
    decoded.is_broken = length > hvd::kMaxFrameBytes;
    bytes.remove_prefix(kHeader);
    if (length > bytes.size() || decoded.is_broken) break;
    decoded.bodies.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return decoded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kSomePiece = 7;
  const Decoded whole = expected(text);
  for (const std::size_t piece : {std::size_t{1}, kSomePiece, size + 1}) {
    require(decode(text, piece) == whole);
  }

  google::protobuf::BytesValue message;
  message.set_value(std::string(text));
  const std::string sent = hvd::encode_frame(message);
  const Decoded back = decode(sent + sent, kSomePiece);
  require(!back.is_broken && back.bodies.size() == 2 && back.bodies[0] == back.bodies[1]);
  google::protobuf::BytesValue parsed;
  require(parsed.ParseFromString(back.bodies[0]) && parsed.value() == text);
  return 0;
}
