// The pipe that is a worker's standard input: takes what comes from the launcher, writes it as the
// worker reads, never blocks, and tells how much has gone in. What is held is bounded by the
// launcher, which sends no more than its window beyond that.
//
// Lifecycle: from the worker's start to the shim's end. Thread: the shim's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "agent/shim/poller.h"
#include "base/unique_fd.h"

namespace hvd {

class InputFeed {
 public:
  // Bytes written since the last call; is_closed, once and last: nobody reads any more.
  using Tell = std::function<void(std::uint64_t taken, bool is_closed)>;

  // `pipe`: a non-blocking write end. The poller is not owned and outlives this.
  InputFeed(Poller& poller, UniqueFd pipe, Tell tell);
  ~InputFeed();
  InputFeed(const InputFeed&) = delete;
  InputFeed& operator=(const InputFeed&) = delete;

  void push(std::string data);
  // Nothing follows: the worker reads end of file behind what was pushed.
  void end();

 private:
  void on_events(std::uint32_t events);
  void flush();
  void watch_for_room(bool is_wanted);
  void close();

  Poller& poller_;
  const Tell tell_;
  UniqueFd pipe_;
  std::deque<std::string> queue_;
  std::size_t written_ = 0;  // of the queue's first piece
  bool has_end_ = false;
  bool is_waiting_ = false;
};

}  // namespace hvd
