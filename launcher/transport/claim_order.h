// Nodes are claimed one after the other, in the order of their names: two jobs that want some of
// the same nodes can then never wait for each other. All opens of one start join before the first
// has reached its node. Thread: the loop's.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "base/loop.h"

namespace hvd {

class ClaimOrder {
 public:
  // From the beginning of an open until its node is claimed, or will not be. It must not outlive
  // the order.
  class Turn {
   public:
    Turn(ClaimOrder& order, std::string name) : order_(order) {
      place_ = order_.names_.insert(std::move(name));
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { end(); }

    // Until nobody is before this one.
    [[nodiscard]] Task<void> come() {
      while (place_ != order_.names_.begin()) co_await order_.changed_.next();
    }
    void end() {
      if (std::exchange(is_over_, true)) return;
      order_.names_.erase(place_);
      order_.changed_.set();
      order_.changed_.clear();
    }

   private:
    ClaimOrder& order_;
    std::multiset<std::string>::iterator place_;
    bool is_over_ = false;
  };

  explicit ClaimOrder(Loop& loop) : changed_(loop) {}

 private:
  std::multiset<std::string> names_;
  Event changed_;
};

}  // namespace hvd
