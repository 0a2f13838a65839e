// How two ranks come to trust one connection: each proves that it knows the job's nonce by an
// HMAC-SHA256 over both sides' greetings, which hold fresh random bytes. The nonce itself never
// travels. What the connection carries afterwards is neither secret nor signed, as with NCCL and
// Gloo.
//
//   dialler: greeting -> acceptor: greeting, proof -> dialler: proof
//
// Lifecycle: made from a socket that dials or was accepted, advanced when the socket is ready, over
// at kDone or kFailed. Messages have fixed sizes, so a stranger can make it hold only a few hundred
// bytes; how long it may take is the owner's business. Threads: the owner's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace hvd {

// Two connections may join a pair of ranks: control carries notes about failures, data the rest.
enum class TcpChannel : std::uint32_t { kControl = 0, kData = 1 };

// What a rank says of itself; the same for all of its connections.
struct TcpIdentity {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t generation = 0;
  std::string host;   // for error texts; cut at 63 bytes
  std::string nonce;  // the job's, never sent
};

class TcpHandshake {
 public:
  enum class State { kGoingOn, kDone, kFailed };

  // identity: not owned, outlives this.
  static TcpHandshake dial(UniqueFd socket, const TcpIdentity* identity, std::uint32_t peer_rank,
                           TcpChannel channel);
  static TcpHandshake accept(UniqueFd socket, const TcpIdentity* identity);

  // Reads and writes what can be done without blocking.
  State advance();
  // What advance() waits for: poll events.
  [[nodiscard]] short events() const;
  [[nodiscard]] int socket() const { return socket_.get(); }

  // After kDone; the dialler knows rank and channel from the start.
  [[nodiscard]] std::uint32_t peer_rank() const { return peer_rank_; }
  [[nodiscard]] TcpChannel channel() const { return channel_; }
  [[nodiscard]] const std::string& peer_host() const { return peer_host_; }
  [[nodiscard]] UniqueFd take_socket() { return std::move(socket_); }

  // After kFailed: the end of the sentence "rank 3 on node2 ...".
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // The connection broke before anything was said: it may be tried again.
  [[nodiscard]] bool may_retry() const { return may_retry_; }
  [[nodiscard]] bool is_dialler() const { return is_dialler_; }
  // Of an acceptor: the other side has greeted as a rank of this job, and may hold itself for
  // connected as soon as it has sent its proof.
  [[nodiscard]] bool is_greeted() const { return !dial_greeting_.empty(); }

 private:
  enum class Step { kConnecting, kWriteGreeting, kReadGreeting, kWriteProof, kReadProof, kOver };

  TcpHandshake(UniqueFd socket, const TcpIdentity* identity, bool is_dialler);
  bool move();
  bool write_some();
  bool read_some();
  bool take_dial_greeting();
  bool take_accept_greeting();
  bool take_dial_proof();
  bool fail(std::string reason, bool may_retry = false);
  [[nodiscard]] std::string proof_of(std::string_view role) const;

  UniqueFd socket_;
  const TcpIdentity* identity_;
  bool is_dialler_;
  Step step_;
  std::string out_;
  std::string in_;
  std::size_t wanted_ = 0;
  std::string dial_greeting_;
  std::string accept_greeting_;
  std::uint32_t peer_rank_ = 0;
  TcpChannel channel_ = TcpChannel::kControl;
  std::string peer_host_;
  std::string reason_;
  bool may_retry_ = false;
};

}  // namespace hvd
