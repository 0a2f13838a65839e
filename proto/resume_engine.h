// A byte stream in both directions that outlives the connections that carry it: what was sent is
// kept until the other end has taken it, and after a break each end says where it stands and the
// other goes on from there. No byte is lost, none comes twice. Pure: bytes in, bytes out.
//
// On the wire, each way, frames of a header (one byte kind, four bytes size, eight bytes place, big
// endian) and, for kData, `size` bytes:
//   kHello  first on every connection; place: how much of the other's stream has come
//   kData   place: that of its first byte
//   kAck    place: how much has come since
//   kEnd    the stream is over; place: that of the end. The end counts as one byte.
// Anything else ends the connection, and with it the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

class ResumeEngine {
 public:
  static constexpr std::size_t kHeader = 13;
  static constexpr std::size_t kMostData = 1 << 16;  // of one frame
  static constexpr std::size_t kMostKept = 4 << 20;  // sent and not acknowledged
  // An acknowledgement goes out by itself after so many bytes; before, when acknowledge_soon().
  static constexpr std::size_t kAckAfter = 1 << 18;

  // A new connection, in place of the one before.
  void connect();

  // ---- our own stream
  // How many bytes more may be given.
  [[nodiscard]] std::size_t room() const;
  void give(std::string_view bytes);  // at most room()
  void give_end();
  // Whether the other end has taken all of it, its end included.
  [[nodiscard]] bool is_given_taken() const { return is_end_given_ && acked_ == end_place() + 1; }

  // ---- the other's stream
  // What came on the connection. An error is a violation of the above.
  [[nodiscard]] Result<void> take_wire(std::string_view bytes);
  // What of its stream has come since the last call.
  [[nodiscard]] std::string take_over();
  [[nodiscard]] std::size_t num_waiting() const { return came_.size(); }
  [[nodiscard]] bool is_ended() const { return is_ended_; }
  // Whether something has come that the other end was not told of.
  [[nodiscard]] bool owes_ack() const { return received_ != told_; }
  void acknowledge_soon() { is_ack_due_ = owes_ack(); }

  // What is to be written on the connection now, at most one kMostData and its header and an
  // acknowledgement; empty: nothing for the time being.
  [[nodiscard]] std::string next_wire();

 private:
  enum class Kind : std::uint8_t { kHello = 1, kData, kAck, kEnd };
  struct Header {
    Kind kind;
    std::uint32_t size;
    std::uint64_t place;
  };

  [[nodiscard]] std::uint64_t end_place() const { return kept_from_ + kept_.size() - head_; }
  [[nodiscard]] Result<void> take_frame(const Header& header, std::string_view data);
  [[nodiscard]] Result<void> drop_until(std::uint64_t place);
  [[nodiscard]] Result<void> take_data(const Header& header, std::string_view data);
  [[nodiscard]] Result<void> take_end(const Header& header);
  static void add_frame(std::string* out, const Header& header, std::string_view data = {});

  // Ours: kept_[head_] is at place kept_from_.
  std::string kept_;
  std::size_t head_ = 0;
  std::uint64_t kept_from_ = 0;
  std::uint64_t sent_ = 0;   // place of the next byte to send on this connection
  std::uint64_t acked_ = 0;  // the end counts as one
  bool is_end_given_ = false;

  // The other's.
  std::string came_;
  std::uint64_t received_ = 0;  // the end counts as one
  std::uint64_t told_ = 0;
  bool is_ended_ = false;  // its end has come
  bool is_ack_due_ = false;

  // The connection.
  std::string partial_;
  bool owes_hello_ = false;
  bool is_hello_seen_ = false;
};

}  // namespace hvd
