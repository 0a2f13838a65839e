// The launcher's lease on this node: how long the shim goes on without having heard of it. Boot
// time goes in, so a suspended machine's lease runs out too. Pure.
#pragma once

#include "base/clock.h"

namespace hvd {

class Lease {
 public:
  Lease() = default;
  // A length of zero or less is no lease: it never runs out.
  Lease(Nanos length, Nanos now) : length_(length) { renew(now); }

  void renew(Nanos now) { expires_ = length_ > Nanos(0) ? now + length_ : Nanos::max(); }
  [[nodiscard]] bool is_expired(Nanos now) const { return now >= expires_; }
  [[nodiscard]] Nanos expires() const { return expires_; }
  [[nodiscard]] Nanos length() const { return length_; }

 private:
  Nanos length_{0};
  Nanos expires_ = Nanos::max();
};

}  // namespace hvd
