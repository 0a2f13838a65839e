// The signals that hvdrun reacts to, turned into one callback on the loop. What was ignored at the
// start stays so: HUP of nohup, INT and QUIT of a script's background jobs, TSTP of a shell without
// job control. PIPE is ignored, a write says EPIPE instead; so are TTIN and TTOU, because a stopped
// hvdrun loses its leases.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <functional>
#include <vector>

#include "base/loop.h"

namespace hvd {

class SignalWatch {
 public:
  // `further`: beside INT, TERM, HUP, QUIT, TSTP, USR1 and USR2.
  SignalWatch(Loop& loop, const std::vector<int>& further, std::function<void(int)> on_signal);
  void stop() { signals_.cancel(); }

 private:
  void arm();

  std::function<void(int)> on_signal_;
  boost::asio::signal_set signals_;
};

// Ends this process as the signal would have, so that shells see it and end their loops.
[[noreturn]] void die_of_signal(int signal);

}  // namespace hvd
