// The rendezvous of a job that no hvdrun started: rank 0 serves the Rendezvous service over TCP
// from within its own process. The store is the launcher's (proto/rendezvous_store.h). Watch is not
// served: there is nobody who could push an abort.
//
// Whoever reaches the port can read the store; a job on a network that others use belongs under
// hvdrun, whose store is behind the user's own sockets. A rank of another job (job_identity.h) is
// refused with every call and disturbs nobody; rank 0 warns of it.
//
// Lifecycle: started once, serves until it is destroyed; open calls then end as cancelled. Threads:
// gRPC's, and one of its own for deadlines; all state is under one lock.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace hvd {

class PeerStoreEdge {
 public:
  // host: as the other ranks call this machine. Listens on all addresses, for that name may stand
  // for another one here than there; on loopback alone where the name says loopback. port 0: the
  // kernel's choice. job: whom it serves. An error is the user's: the port.
  [[nodiscard]] static Result<std::unique_ptr<PeerStoreEdge>> start(const std::string& host,
                                                                    int port, std::string job);
  ~PeerStoreEdge();
  PeerStoreEdge(const PeerStoreEdge&) = delete;
  PeerStoreEdge& operator=(const PeerStoreEdge&) = delete;

  [[nodiscard]] int port() const;
  // By which this machine itself reaches it.
  [[nodiscard]] const std::string& local_host() const;

 private:
  struct Service;
  explicit PeerStoreEdge(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace hvd
