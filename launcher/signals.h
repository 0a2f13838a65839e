// The signals that hvdrun reacts to, turned into one callback on the loop. HUP stays ignored if it
// was so at the start (nohup); PIPE is ignored, a write says EPIPE instead.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <functional>

#include "base/loop.h"

namespace hvd {

class SignalWatch {
 public:
  SignalWatch(Loop& loop, std::function<void(int)> on_signal);
  void stop() { signals_.cancel(); }

 private:
  void arm();

  std::function<void(int)> on_signal_;
  boost::asio::signal_set signals_;
};

// Ends this process as the signal would have, so that shells see it and end their loops.
[[noreturn]] void die_of_signal(int signal);

}  // namespace hvd
