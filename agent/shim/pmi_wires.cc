#include "agent/shim/pmi_wires.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace hvd {

PmiWires::~PmiWires() {
  for (const auto& [rank, wire] : wires_) poller_.forget(wire.socket.get());
}

void PmiWires::add(std::uint32_t rank, UniqueFd socket) {
  const int fd = socket.get();
  wires_[rank].socket = std::move(socket);
  poller_.watch(fd, EPOLLIN, [this, rank](std::uint32_t events) { on_events(rank, events); });
}

void PmiWires::on_events(std::uint32_t rank, std::uint32_t events) {
  const auto found = wires_.find(rank);
  if (found == wires_.end()) return;
  Wire& wire = found->second;
  bool is_alive = (events & EPOLLOUT) == 0 || flush(wire);
  const bool may_read = !wire.is_asking && !wire.is_closing && wire.queue.empty();
  if (is_alive && may_read && (events & EPOLLIN) != 0) {
    is_alive = read_piece(rank, wire);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    wire.is_asking = false;
    hear_out(rank, wire);  // nobody holds the other end any more
    is_alive = false;
  }
  settle(found, is_alive);
}

bool PmiWires::read_piece(std::uint32_t rank, Wire& wire) {
  std::array<char, kMaxPiece> piece;
  const ssize_t n = recv(wire.socket.get(), piece.data(), piece.size(), 0);
  if (n < 0) return is_try_again();
  if (n == 0) return false;
  wire.is_asking = true;
  tell_(rank, std::string(piece.data(), static_cast<std::size_t>(n)));
  return true;
}

bool PmiWires::flush(Wire& wire) {
  while (!wire.queue.empty()) {
    const ssize_t n = send(wire.socket.get(), wire.queue.data(), wire.queue.size(), MSG_NOSIGNAL);
    if (n < 0) return is_try_again();
    wire.queue.erase(0, static_cast<std::size_t>(n));
  }
  return !wire.is_closing;
}

// A rank says little before it ends; what is beyond that is nobody's farewell.
void PmiWires::hear_out(std::uint32_t rank, Wire& wire) {
  constexpr int kMaxLastPieces = 4;
  for (int i = 0; i < kMaxLastPieces && !wire.is_closing && read_piece(rank, wire); ++i) {
    if (!std::exchange(wire.is_asking, false)) return;
  }
}

// Waits for what is needed next, or lets the wire go. Its end is told in any case.
void PmiWires::settle(Wires::iterator wire, bool is_alive) {
  const Wire& state = wire->second;
  if (!is_alive) {
    poller_.forget(state.socket.get());
    wires_.erase(wire);
    return;
  }
  std::uint32_t wanted = 0;
  if (!state.queue.empty()) {
    wanted = EPOLLOUT;
  } else if (!state.is_asking) {
    wanted = EPOLLIN;
  }
  poller_.change(state.socket.get(), wanted);
}

void PmiWires::answer(std::uint32_t rank, std::string data, bool close) {
  const auto found = wires_.find(rank);
  if (found == wires_.end()) return;
  Wire& wire = found->second;
  wire.is_asking = false;
  wire.is_closing = wire.is_closing || close;
  wire.queue += data;
  settle(found, flush(wire));
}

void PmiWires::end_rank(std::uint32_t rank) {
  const auto found = wires_.find(rank);
  if (found == wires_.end()) return;
  found->second.is_asking = false;
  hear_out(rank, found->second);
  settle(found, false);
}

}  // namespace hvd
