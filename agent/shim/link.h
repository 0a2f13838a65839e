// The shim's end of the socket to its agent. Never blocks: what the socket does not take waits in a
// queue, which the log window bounds. After end_of_stream everything sent is thrown away.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "agent/shim/frames.h"
#include "agent/shim/poller.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

class Link {
 public:
  struct Handlers {
    std::function<void(const hvdrun::v1::ToShim&)> on_message;
    std::function<void()> on_end;  // end of file, an error, or bytes that are no frames
  };

  // The poller is not owned and outlives this. The socket becomes non-blocking.
  Link(Poller& poller, UniqueFd socket, Handlers handlers);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void send(const hvdrun::v1::FromShim& message);
  [[nodiscard]] bool is_open() const { return socket_.is_valid(); }
  [[nodiscard]] bool is_flushed() const { return queue_.empty(); }

 private:
  void on_events(std::uint32_t events);
  void receive();
  void deliver();
  void flush();
  void end();

  Poller& poller_;
  const Handlers handlers_;
  UniqueFd socket_;
  FrameDecoder decoder_;
  std::deque<std::string> queue_;
  std::size_t sent_ = 0;  // bytes of the queue's first frame that are out
  bool is_waiting_to_write_ = false;
};

}  // namespace hvd
