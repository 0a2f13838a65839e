// The sockets of one rank to all others, and what is known of the peers' health. Each pair of ranks
// has a control connection; pairs at a distance of a power of two (all that the algorithms use)
// have a data connection too.
//
// Control carries short notes, never bulk, so that a note always fits into its buffer: questions
// and answers about who waits for whom (tcp_blame.h), "I have given up because of rank 3", "I leave
// in good order". A connection that ends without a note means that the peer's process or host is
// gone.
//
// Failure is final and the first one stays. Whoever finds it tells all others and shuts its sockets
// down, so that nobody waits for it.
//
// Lifecycle: made from connected sockets; destroyed after a failure or in good order. Threads: one
// at a time, except fail() and failure(), which any thread may call.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "hvdrun/communicator.h"
#include "runtime/tcp_blame.h"

namespace hvd {

struct TcpPeer {
  std::string host;
  UniqueFd control;
  UniqueFd data;  // only where needs_data_link()
};

[[nodiscard]] bool needs_data_link(int rank, int peer, int size);

class TcpMesh {
 public:
  // peers: by rank; the own place is without sockets.
  TcpMesh(int rank, std::vector<TcpPeer> peers);
  TcpMesh(const TcpMesh&) = delete;
  TcpMesh& operator=(const TcpMesh&) = delete;
  ~TcpMesh();

  // Not before it may nobody be asked; an error is of the system's descriptors.
  [[nodiscard]] Result<void> open();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(peers_.size()); }
  [[nodiscard]] int data_socket(int peer) const;
  // "rank 3 on node2".
  [[nodiscard]] std::string describe(int rank) const;

  // Makes `failure` the reason for everything from now on, unless there is one. told_by: the rank
  // whose note it was, -1 for a finding of this rank.
  void fail(CommunicatorFailure failure, int told_by = -1);
  [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<CommunicatorFailure> failure() const;

  // Readable when read_control() has something to do, also after fail() of another thread.
  [[nodiscard]] int control_events() const { return epoll_.get(); }
  void read_control();

  // What this rank tells the others when they ask.
  void set_awaited(int peer) { awaited_ = peer; }
  // Forgets old answers and asks everybody.
  void ask_all();
  [[nodiscard]] const std::vector<TcpAnswer>& answers() const { return answers_; }

  // The data connection of a peer ended: fails with the reason that the peer's control connection
  // gives, for which it waits until `limit` at most.
  void lose(int peer, SteadyTime limit);

  // In good order: peers no longer take the end of the connection for a failure.
  void leave();

 private:
  struct Note;

  bool read_notes(int peer, bool has_ended);
  void take_note(int peer, const Note& note);
  void lose_control(int peer);
  void send_note(int peer, const Note& note);
  void tell_all(const Note& note);
  void shut_down();

  const int rank_;
  std::vector<TcpPeer> peers_;
  UniqueFd epoll_;
  UniqueFd wake_;  // an eventfd, for fail() of another thread

  int awaited_ = -1;
  std::vector<TcpAnswer> answers_;
  std::vector<bool> has_left_;

  mutable std::mutex mutex_;  // of failure_ and of sending on the control connections
  std::optional<CommunicatorFailure> failure_;
  std::atomic<bool> has_failed_ = false;
};

}  // namespace hvd
