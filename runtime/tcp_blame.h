// Who holds a collective operation up? Pure. Shortly before its time limit a rank asks all others,
// on their control connections, whom they wait for. Whoever waits inside an operation answers; a
// rank that is stopped, unreachable or busy elsewhere does not. The chain "I wait for 1, 1 waits
// for 2, 2 does not answer" ends at the one to name, whichever neighbour this rank itself waits
// for.
#pragma once

#include <span>

namespace hvd {

struct TcpAnswer {
  bool has_answered = false;
  int awaits = -1;  // a rank; -1: nobody
};

// awaited: whom `self` waits for; answers: by rank. Where everybody in the chain answers it is
// `awaited`.
[[nodiscard]] int find_culprit(int self, int awaited, std::span<const TcpAnswer> answers);

}  // namespace hvd
