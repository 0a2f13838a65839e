#include "agent/fabric.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <utility>

namespace hvd {
namespace {

using boost::asio::ip::tcp;

constexpr int kBacklog = 128;

int bind_any(int socket, int family, std::uint16_t port) {
  if (family == AF_INET) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    return bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  const int off = 0;
  setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(port);
  return bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void allow_reuse(int socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

UniqueFd make_socket(int family) {
  return UniqueFd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Invalid, with errno, if another job has the port.
UniqueFd claim_name(std::uint16_t port) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("hvdrun-master-port-{}", port);
  memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) socket.reset();
  return socket;
}

// Whether IPv6 can be used at all: compiled in and not switched off.
int usable_family() {
  const UniqueFd probe = make_socket(AF_INET6);
  return probe.is_valid() && bind_any(probe.get(), AF_INET6, 0) == 0 ? AF_INET6 : AF_INET;
}

// An IPv4 peer on a dual-stack socket is told as IPv4.
std::string peer_text(const tcp::socket& socket) {
  boost::system::error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return {};
  const boost::asio::ip::address address = peer.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6())
        .to_string();
  }
  return address.to_string();
}

// In a time that does not depend on where they differ.
bool is_equal_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

Result<FabricReservation> FabricReservation::make(std::uint16_t low, std::uint16_t high,
                                                  std::uint32_t start) {
  if (low == 0 || low > high) return make_error("{}-{} is not a range of ports", low, high);
  const std::uint32_t count = high - low + 1u;
  const int family = usable_family();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<std::uint16_t>(low + (start + i) % count);
    UniqueFd socket = make_socket(family);
    if (!socket.is_valid()) return make_error("cannot make a socket: {}", strerror(errno));
    allow_reuse(socket.get());
    UniqueFd name = claim_name(port);
    if (name.is_valid() && bind_any(socket.get(), family, port) == 0) {
      return FabricReservation(std::move(name), std::move(socket), port, family);
    }
    if (errno != EADDRINUSE) return make_error("cannot bind port {}: {}", port, strerror(errno));
  }
  if (count == 1) return make_error("port {} is in use", low);
  return make_error("all ports of {}-{} are in use", low, high);
}

Result<UniqueFd> FabricReservation::listen() const {
  UniqueFd socket = make_socket(family_);
  if (!socket.is_valid()) return make_error("cannot make a socket: {}", strerror(errno));
  allow_reuse(socket.get());
  if (bind_any(socket.get(), family_, port_) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    return make_error("cannot listen on port {}: {}", port_, strerror(errno));
  }
  return socket;
}

struct FabricListener::State {
  State(Loop& loop, Config settings) : config(std::move(settings)), acceptor(loop) {}
  const Config config;
  tcp::acceptor acceptor;
  std::size_t num_peers = 0;
};

FabricListener::FabricListener(Loop& loop, UniqueFd socket, Config config)
    : state_(std::make_shared<State>(loop, std::move(config))) {
  boost::system::error_code error;
  // The protocol given here only names the family of accepted sockets; both read alike.
  state_->acceptor.assign(tcp::v6(), socket.release(), error);
  boost::asio::co_spawn(loop, accept(state_), boost::asio::detached);
}

FabricListener::~FabricListener() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
}

Task<void> FabricListener::accept(std::shared_ptr<State> state) {
  while (state->acceptor.is_open()) {
    auto [error, socket] = co_await state->acceptor.async_accept(kAwait);
    if (!state->acceptor.is_open()) co_return;
    if (error) {
      // Out of descriptors, or the peer has gone already: the next one may fare better.
      boost::asio::steady_timer pause(state->acceptor.get_executor(),
                                      std::chrono::milliseconds(20));
      co_await pause.async_wait(kAwait);
      continue;
    }
    if (state->num_peers >= state->config.max_peers) continue;
    boost::asio::co_spawn(state->acceptor.get_executor(), serve(state, std::move(socket)),
                          boost::asio::detached);
  }
}

Task<void> FabricListener::serve(std::shared_ptr<State> state, tcp::socket socket) {
  ++state->num_peers;
  boost::asio::steady_timer limit(socket.get_executor(), state->config.peer_timeout);
  limit.async_wait([&socket](const boost::system::error_code& error) {
    boost::system::error_code ignored;
    if (!error) socket.close(ignored);
  });
  std::string nonce(kFabricNonceBytes, '\0');
  const auto [error, n] =
      co_await boost::asio::async_read(socket, boost::asio::buffer(nonce), kAwait);
  if (!error && is_equal_secret(nonce, state->config.nonce)) {
    const std::string answer = fabric_answer(state->config.job_id, peer_text(socket));
    co_await boost::asio::async_write(socket, boost::asio::buffer(answer), kAwait);
  }
  limit.cancel();
  --state->num_peers;
}

std::string fabric_answer(std::string_view job_id, std::string_view address) {
  return fmt::format("hvdrun {} {}\n", job_id, address);
}

std::string parse_fabric_answer(std::string_view line, std::string_view job_id) {
  const std::string start = fmt::format("hvdrun {} ", job_id);
  if (line.substr(0, start.size()) != start) return {};
  line.remove_prefix(start.size());
  const std::size_t end = line.find('\n');
  return end == std::string_view::npos ? std::string() : std::string(line.substr(0, end));
}

}  // namespace hvd
