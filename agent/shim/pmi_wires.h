// The shim's ends of the sockets that the workers have as their PMI descriptor. Only carries bytes:
// one piece of a rank goes out, and no more is read of it until the agent has answered and the rank
// has taken the answer. So what is held for a rank is bounded, and nothing blocks.
//
// Lifecycle: one per job. The poller is not owned and outlives this. Thread: the shim's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "agent/shim/poller.h"
#include "base/unique_fd.h"

namespace hvd {

class PmiWires {
 public:
  static constexpr std::size_t kMaxPiece = 8192;

  using Tell = std::function<void(std::uint32_t rank, std::string piece)>;

  PmiWires(Poller& poller, Tell tell) : poller_(poller), tell_(std::move(tell)) {}
  ~PmiWires();
  PmiWires(const PmiWires&) = delete;
  PmiWires& operator=(const PmiWires&) = delete;

  // A non-blocking socket.
  void add(std::uint32_t rank, UniqueFd socket);

  // The agent's answer: the next piece may be read once the rank has taken it. close: the rank
  // reads end of file behind it. A rank that has gone is no error.
  void answer(std::uint32_t rank, std::string data, bool close);

  // The rank's leader has ended: what it had sent is told, then its wire goes, whoever of its
  // children still holds the other end.
  void end_rank(std::uint32_t rank);

 private:
  struct Wire {
    UniqueFd socket;
    std::string queue;        // not yet taken by the rank
    bool is_asking = false;   // its last piece is not answered
    bool is_closing = false;  // nothing is read any more
  };
  using Wires = std::map<std::uint32_t, Wire>;

  void on_events(std::uint32_t rank, std::uint32_t events);
  // False: the other end has gone, or nobody will be heard there any more.
  [[nodiscard]] bool read_piece(std::uint32_t rank, Wire& wire);
  void hear_out(std::uint32_t rank, Wire& wire);
  [[nodiscard]] static bool flush(Wire& wire);
  void settle(Wires::iterator wire, bool is_alive);

  Poller& poller_;
  const Tell tell_;
  Wires wires_;
};

}  // namespace hvd
