// The job's own rendezvous store as the place where ranks leave their addresses: what a worker of
// hvdrun uses. One generation of the job's key space.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/rendezvous_link.h"
#include "runtime/tcp_rendezvous.h"

namespace hvd {

class TcpRendezvousLink final : public TcpRendezvous {
 public:
  TcpRendezvousLink(RendezvousLink link, std::uint32_t generation)
      : link_(std::move(link)), generation_(generation) {}
  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override;
  Result<std::string> get(const std::string& key, Timeout timeout) override;

 private:
  RendezvousLink link_;
  const std::uint32_t generation_;
};

}  // namespace hvd
