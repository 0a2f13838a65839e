// The reserved MASTER_PORT of node 0 and the check that other nodes reach it.
//
// Reserving: a name of the network namespace (an abstract socket), which only one job can have,
// then the port, bound on [::] with SO_REUSEADDR: rank 0's store, which sets it too, can have it, a
// plain bind cannot, and what an earlier job's connections have left in TIME-WAIT does not matter.
// A second such socket listens during the check: it can be closed without giving the reservation
// up.
//
// Protocol of the check: the peer sends the nonce (16 bytes); the listener answers one line
// "hvdrun JOB ADDRESS" with the address it saw the peer come from. A wrong nonce or silence is
// closed without a byte. The job id, which the peer did not send, proves the listener.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

inline constexpr std::size_t kFabricNonceBytes = 16;

// A port that stays ours as long as this lives.
class FabricReservation {
 public:
  // Tries every port of [low, high] once, beginning at `start` (counted from low, wrapped).
  [[nodiscard]] static Result<FabricReservation> make(std::uint16_t low, std::uint16_t high,
                                                      std::uint32_t start);

  [[nodiscard]] std::uint16_t port() const { return port_; }

  // A second socket on the port, listening. Only one at a time.
  [[nodiscard]] Result<UniqueFd> listen() const;

 private:
  FabricReservation(UniqueFd name, UniqueFd socket, std::uint16_t port, int family)
      : name_(std::move(name)), socket_(std::move(socket)), port_(port), family_(family) {}

  UniqueFd name_;
  UniqueFd socket_;
  std::uint16_t port_;
  int family_;
};

// Answers peers of the check until it is destroyed. Thread: the loop's.
class FabricListener {
 public:
  struct Config {
    std::string nonce;
    std::string job_id;
    std::chrono::milliseconds peer_timeout = std::chrono::seconds(3);
    std::size_t max_peers = 256;  // at once; more are closed unheard
  };

  FabricListener(Loop& loop, UniqueFd socket, Config config);
  ~FabricListener();

 private:
  struct State;
  static Task<void> accept(std::shared_ptr<State> state);
  static Task<void> serve(std::shared_ptr<State> state, boost::asio::ip::tcp::socket socket);

  std::shared_ptr<State> state_;  // shared with the coroutines that answer peers
};

// "hvdrun JOB ADDRESS\n" and back; an empty address means that the line is not ours.
[[nodiscard]] std::string fabric_answer(std::string_view job_id, std::string_view address);
[[nodiscard]] std::string parse_fabric_answer(std::string_view line, std::string_view job_id);

}  // namespace hvd
