#include "agent/shim/frames.h"

#include <cstdint>

namespace hvd {
namespace {

constexpr std::size_t kHeaderBytes = 4;

std::uint32_t read_length(std::string_view header) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    length |= std::uint32_t{static_cast<unsigned char>(header[i])} << (8 * i);
  }
  return length;
}

}  // namespace

std::string encode_frame(const google::protobuf::MessageLite& message) {
  const std::size_t size = message.ByteSizeLong();
  if (size > kMaxFrameBytes) return {};
  std::string frame;
  frame.reserve(kHeaderBytes + size);
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    frame.push_back(static_cast<char>((size >> (8 * i)) & 0xffU));
  }
  message.AppendPartialToString(&frame);
  return frame;
}

void FrameDecoder::append(std::string_view bytes) {
  buffer_.erase(0, start_);
  start_ = 0;
  buffer_.append(bytes);
}

std::optional<std::string_view> FrameDecoder::next() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  if (is_broken_ || rest.size() < kHeaderBytes) return std::nullopt;
  const std::size_t length = read_length(rest);
  if (length > kMaxFrameBytes) {
    is_broken_ = true;
    return std::nullopt;
  }
  if (rest.size() - kHeaderBytes < length) return std::nullopt;
  start_ += kHeaderBytes + length;
  return rest.substr(kHeaderBytes, length);
}

}  // namespace hvd
