// The order in which gradients become ready, as rank 0 saw it in the first step: everybody's order
// of communication from then on. Ranks may see different ones (autograd promises none); only that
// all use the same matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "hvdrun/communicator.h"

namespace hvd {

// A permutation of the tensors 0 .. num_tensors - 1: those of `arrivals`, where one that came more
// than once counts as of its last time, then the rest. Pure.
[[nodiscard]] std::vector<std::int64_t> order_of_arrival(std::span<const std::size_t> arrivals,
                                                         std::size_t num_tensors);

// Rank 0's order. All ranks call it, with the same number of tensors.
[[nodiscard]] Result<std::vector<std::int64_t>> adopt_order(std::vector<std::int64_t> own,
                                                            Communicator& communicator,
                                                            const Call& call);

}  // namespace hvd
