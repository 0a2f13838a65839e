// How often the fabric check tries an address of node 0, and when it has heard enough. Pure.
//
// A packet that gets lost is sent again after one second, then ever later, and a lost answer later
// still: on a poor network one connection may take longer than the whole check. A new one each
// second beside those that still wait has its first packet on the way at once.
#pragma once

#include <boost/system/error_code.hpp>

#include "base/clock.h"

namespace hvd {

inline constexpr Nanos kFabricNextTry = std::chrono::seconds(1);

// Whether nobody has to try again after a connection failed `since` the check's begin: somebody has
// said no. A host that nobody answers for is told in the same words as one that a router or a
// firewall refuses, but only after some seconds: in these the questions may have got lost.
[[nodiscard]] bool is_refusal(const boost::system::error_code& error, Nanos since);

// When the check ends for the other addresses if one has answered `since` its begin: these may take
// longer, but where a network answers in no time, one that is silent is not waited for.
[[nodiscard]] Nanos enough_after(Nanos since);

}  // namespace hvd
