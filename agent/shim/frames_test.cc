#include "agent/shim/frames.h"

#include <gtest/gtest.h>

#include <string>

#include "hvdrun/v1/shim.pb.h"

namespace hvd {
namespace {

using hvdrun::v1::ToShim;

std::string ping_frame(std::uint64_t id) {
  ToShim message;
  message.mutable_ping()->set_id(id);
  return encode_frame(message);
}

std::uint64_t ping_id(std::string_view body) {
  ToShim message;
  EXPECT_TRUE(message.ParseFromArray(body.data(), static_cast<int>(body.size())));
  return message.ping().id();
}

TEST(Frames, LengthIsLittleEndianInFrontOfTheMessage) {
  const std::string frame = ping_frame(1);
  EXPECT_EQ(frame.substr(0, 4), std::string("\x04\0\0\0", 4));
  EXPECT_EQ(frame.size(), 8U);
}

TEST(Frames, MessagesComeOutWholeHoweverTheBytesCome) {
  const std::string stream = ping_frame(1) + ping_frame(200) + ping_frame(70000);
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    FrameDecoder decoder;
    std::vector<std::uint64_t> ids;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      decoder.append(std::string_view(stream).substr(at, step));
      while (const auto body = decoder.next()) ids.push_back(ping_id(*body));
    }
    EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 200, 70000})) << "in steps of " << step;
  }
}

TEST(Frames, AnEmptyMessageIsAFrameOfLengthZero) {
  FrameDecoder decoder;
  decoder.append(encode_frame(ToShim()));
  const auto body = decoder.next();
  ASSERT_TRUE(body.has_value());
  EXPECT_TRUE(body->empty());
  EXPECT_FALSE(decoder.next().has_value());
}

TEST(Frames, TooLongALengthBreaksTheStreamForGood) {
  FrameDecoder decoder;
  decoder.append(std::string("\x01\0\0\x01", 4));  // 16 MiB + 1
  EXPECT_FALSE(decoder.next().has_value());
  EXPECT_TRUE(decoder.is_broken());
  decoder.append(ping_frame(1));
  EXPECT_FALSE(decoder.next().has_value());
}

TEST(Frames, AMessageBeyondTheLimitIsNotEncoded) {
  ToShim message;
  message.mutable_stdin()->set_data(std::string(kMaxFrameBytes, 'x'));
  EXPECT_TRUE(encode_frame(message).empty());
}

}  // namespace
}  // namespace hvd
