// Carries the bytes of all ssh sessions between their channels and the socket pairs that gRPC holds
// the other ends of: one thread, never blocking, bounded in memory by the windows of the channels.
//
// Lifecycle: the thread starts with the first session and ends in the destructor, at once. add()
// and drop() may be called on any thread; a session ends by itself when either of its sides does.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "launcher/transport/side_text.h"
#include "launcher/transport/ssh_session.h"

namespace hvd {

struct PumpedSession {
  std::unique_ptr<SshSession> session;  // logged in, its command running
  UniqueFd socket;                      // the pump's end of the pair, non-blocking
  std::shared_ptr<SideText> side_text;  // shared with the connection, which may end before or after
};

class PumpLink;

class Pump {
 public:
  Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  ~Pump();

  // Returns a number for drop().
  std::uint64_t add(PumpedSession session);

  // What the socket still holds is sent if the network takes it at once, then the session is
  // closed.
  void drop(std::uint64_t id);

 private:
  void run();
  bool take_orders();
  void wake();

  const UniqueFd epoll_;
  const UniqueFd wakeup_;                                     // eventfd
  std::map<std::uint64_t, std::unique_ptr<PumpLink>> links_;  // the pump thread's

  std::mutex mutex_;
  std::uint64_t next_id_ = 1;                                   // guarded by mutex_
  std::vector<std::pair<std::uint64_t, PumpedSession>> added_;  // guarded by mutex_
  std::vector<std::uint64_t> dropped_;                          // guarded by mutex_
  bool is_stopping_ = false;                                    // guarded by mutex_
  std::thread thread_;                                          // started under mutex_
};

}  // namespace hvd
