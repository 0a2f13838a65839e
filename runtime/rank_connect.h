// From a meeting to a communicator between the CPUs of all ranks, and to the places that only all
// ranks together know.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "hvdrun/communicator.h"
#include "runtime/launch_place.h"
#include "runtime/worker_rendezvous.h"

namespace hvd {

// By every rank, once.
[[nodiscard]] Result<std::unique_ptr<Communicator>> connect_ranks(
    WorkerRendezvous& rendezvous, const LaunchPlace& launch, std::chrono::milliseconds timeout);

// The place of this rank with what its launcher did not tell; a collective operation.
[[nodiscard]] Result<Place> gather_place(Communicator& communicator, const LaunchPlace& launch,
                                         std::chrono::milliseconds timeout);

}  // namespace hvd
