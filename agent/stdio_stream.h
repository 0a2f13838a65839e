// The stream that reached the node, taken from standard input and output. A connected socket on
// both is handed to gRPC as it is; two pipes (or two sockets) are pumped into a socket pair by two
// threads that only move bytes, because gRPC takes nothing but one socket.
//
// Lifecycle: take() first thing in main, before any thread; then the ready line; then open(). From
// take() on, descriptors 0 and 1 are /dev/null, so that no child ever sees the stream.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

class StdioStream {
 public:
  [[nodiscard]] static Result<StdioStream> take();

  StdioStream(StdioStream&&) noexcept;
  StdioStream& operator=(StdioStream&&) noexcept;
  ~StdioStream();

  // Whether input and output are one socket.
  [[nodiscard]] bool is_direct() const { return !output_.is_valid(); }

  // Straight to the output, all of it; before open() only.
  [[nodiscard]] Result<void> write(std::string_view text);

  // The socket for gRPC, non-blocking. Pumped streams call `on_input_end`, on a foreign thread,
  // once the input has ended; a direct one never does.
  [[nodiscard]] Result<UniqueFd> open(std::function<void()> on_input_end);

  // Waits until everything that gRPC wrote before it closed its socket is out, at most so long.
  // `on_input_end` is not called any more.
  void close(std::chrono::milliseconds limit);

 private:
  struct Pump;
  StdioStream();

  UniqueFd input_;  // of a direct stream: the socket itself
  UniqueFd output_;
  std::shared_ptr<Pump> pump_;  // with the two threads, which end when their stream does
};

}  // namespace hvd
