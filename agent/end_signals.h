// The signals that end an agent: SIGTERM, SIGINT and SIGHUP, but for those that it was started with
// as ignored, as nohup and scripts do.
#pragma once

#include <signal.h>

#include <boost/asio/signal_set.hpp>
#include <utility>

namespace hvd {

// `on_signal(int number)` is called on the loop of the set, once; later ones are taken and change
// nothing.
template <typename OnSignal>
void watch_end_signals(boost::asio::signal_set& signals, OnSignal on_signal) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction inherited {};
    sigaction(number, nullptr, &inherited);
    boost::system::error_code ignored;
    if (inherited.sa_handler != SIG_IGN) signals.add(number, ignored);
  }
  signals.async_wait(
      [on_signal = std::move(on_signal)](const boost::system::error_code& error, int number) {
        if (!error) on_signal(number);
      });
}

}  // namespace hvd
