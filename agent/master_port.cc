#include "agent/master_port.h"

#include <random>

namespace hvd {

namespace v1 = hvdrun::v1;

v1::FabricListenReply MasterPort::open(const v1::FabricListen& request, const std::string& job_id) {
  v1::FabricListenReply reply;
  if (auto done = reserve_and_listen(request, job_id); !done) {
    reply.set_error(done.error().message);
  } else {
    reply.set_port(reservation_->port());
  }
  return reply;
}

Result<void> MasterPort::reserve_and_listen(const v1::FabricListen& request,
                                            const std::string& job_id) {
  if (request.port_high() > UINT16_MAX) {
    return make_error("{} is not a port", request.port_high());
  }
  if (!reservation_) {
    auto made = FabricReservation::make(static_cast<std::uint16_t>(request.port_low()),
                                        static_cast<std::uint16_t>(request.port_high()),
                                        std::random_device{}());
    if (!made) return tl::unexpected(made.error());
    reservation_ = std::move(*made);
  }
  if (!request.listen() || listener_) return {};
  if (request.nonce().size() != kFabricNonceBytes) {
    return make_error("the fabric check's nonce has {} bytes instead of {}", request.nonce().size(),
                      kFabricNonceBytes);
  }
  auto socket = reservation_->listen();
  if (!socket) return tl::unexpected(socket.error());
  FabricListener::Config config;
  config.nonce = request.nonce();
  config.job_id = job_id;
  listener_ = std::make_unique<FabricListener>(loop_, std::move(*socket), std::move(config));
  return {};
}

}  // namespace hvd
