// The agent's end of the socket to its shim: messages in frames (shim/frames.h).
//
// Lifecycle: made with the shim's socket; ends once, by the shim's end of stream, a broken frame or
// close(). Thread: the loop's.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "agent/shim/frames.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

class ShimChannel {
 public:
  struct Handlers {
    std::function<void(hvdrun::v1::FromShim&&)> on_message;
    std::function<void()> on_batch;  // all messages that had arrived together were handed over
    std::function<void()> on_end;    // not after close()
  };

  ShimChannel(Loop& loop, UniqueFd socket, Handlers handlers);

  // False if the message is too large for a frame; it is not sent then.
  bool send(const hvdrun::v1::ToShim& message);

  // The shim sees end of stream.
  void close();

 private:
  void read();
  void take_frames();
  void write();
  void end();

  const Handlers handlers_;
  boost::asio::local::stream_protocol::socket socket_;
  std::vector<char> input_;
  FrameDecoder decoder_;
  std::deque<std::string> output_;  // the first one is being written
  bool is_open_ = true;
};

}  // namespace hvd
