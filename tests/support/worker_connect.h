// A worker's way to its communicator, as hvd::Runtime goes it but without a registration: for ranks
// that look at the connecting itself.
#pragma once

#include <unistd.h>

#include <chrono>
#include <memory>

#include "base/host_name.h"
#include "runtime/launch_place.h"
#include "runtime/rank_connect.h"
#include "runtime/worker_rendezvous.h"

namespace hvd::test {

inline Result<LaunchPlace> own_place() { return launch_place(split_environ(environ), host_name()); }

// timeout: until all ranks are connected.
inline Result<std::unique_ptr<Communicator>> connect_worker(const LaunchPlace& place,
                                                            std::chrono::milliseconds timeout) {
  auto rendezvous = open_rendezvous(place, timeout);
  if (!rendezvous) return tl::unexpected(rendezvous.error());
  auto connected = connect_ranks(**rendezvous, place, timeout);
  if (connected) (*rendezvous)->clean_up();
  return connected;
}

}  // namespace hvd::test
