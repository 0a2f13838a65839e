#include "launcher/stop_wishes.h"

#include <signal.h>

#include <algorithm>

namespace hvd {
namespace {

bool is_same_origin(const ReceivedSignal& a, const ReceivedSignal& b) {
  return a.number == b.number && a.is_of_kernel == b.is_of_kernel && a.sender == b.sender;
}

}  // namespace

bool StopWishes::take(const ReceivedSignal& signal) {
  std::erase_if(recent_,
                [&](const Wish& wish) { return signal.time - wish.front().time >= kEcho; });
  const auto echoed = std::find_if(recent_.begin(), recent_.end(),
                                   [&](const Wish& wish) { return is_echo(wish, signal); });
  if (echoed != recent_.end()) {
    echoed->push_back(signal);
    return false;
  }
  recent_.push_back({signal});
  ++count_;
  return true;
}

// Of a signal that came less than kEcho after the wish.
bool StopWishes::is_echo(const Wish& wish, const ReceivedSignal& signal) {
  if (signal.time - wish.front().time < kAtOnce) {
    // A system that shuts down sends TERM and HUP; QUIT wants more than what came before it.
    return signal.number == wish.front().number || signal.number != SIGQUIT;
  }
  const auto has = [&wish](auto is_so) { return std::any_of(wish.begin(), wish.end(), is_so); };
  if (has([&](const ReceivedSignal& known) { return is_same_origin(known, signal); })) return false;
  return has([&](const ReceivedSignal& known) {
    return known.number == signal.number && known.is_of_kernel != signal.is_of_kernel;
  });
}

}  // namespace hvd
