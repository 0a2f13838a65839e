// hvdrun's standard input, read for rank 0 only as fast as rank 0 takes it.
//
// A thread of its own reads, because O_NONBLOCK on a descriptor that is shared with the user's
// shell would hold for the shell, too. It reads nothing while no credit is left, and nothing from a
// terminal in whose background hvdrun runs (the terminal belongs to somebody else then; SIGTTIN is
// ignored). A thread that is stuck in a read is left behind.
//
// Thread: construction, grant(), stop() and destruction on the loop's; the handler runs there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"

namespace hvd {

class InputReader {
 public:
  // Bytes in their order; is_end, once and last: end of file, or an error that is `errno_value`.
  using Handler = std::function<void(std::string data, bool is_end, int errno_value)>;

  InputReader(Loop& loop, int fd, Handler handler);
  ~InputReader();
  InputReader(const InputReader&) = delete;
  InputReader& operator=(const InputReader&) = delete;

  // So many more bytes may be read.
  void grant(std::uint64_t bytes);
  // Reads no more; the handler is not called again.
  void stop();

 private:
  class Source;
  // Shared by this object and the thread, which may be stuck in read(2) when this object goes.
  const std::shared_ptr<Source> source_;
};

}  // namespace hvd
