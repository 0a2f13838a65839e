// The unix socket of a job's own agent: takes connections of root and of our own user, reads the
// one line that says what each is for (job_agent.h), and hands it on.
//
// Lifecycle: start() once; close() ends listening. Thread: the loop's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>

#include "base/loop.h"
#include "base/unique_fd.h"

namespace hvd {

class JobDoor {
 public:
  struct Handlers {
    std::function<void(UniqueFd connection)> on_stream;
    std::function<void(const std::string& reason)> on_stop;
  };

  // `socket` listens and does not block.
  JobDoor(Loop& loop, UniqueFd socket, Handlers handlers);

  void start();
  // Whoever else holds the socket: nobody is taken any more.
  void close();

 private:
  [[nodiscard]] Task<void> accept();
  [[nodiscard]] Task<void> meet(UniqueFd connection);

  Loop& loop_;
  const UniqueFd socket_;
  const Handlers handlers_;
  boost::asio::posix::stream_descriptor listener_;
};

}  // namespace hvd
