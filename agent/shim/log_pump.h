// Reads the workers' pipes and hands out chunks, at most 64 KiB each, in order per stream and in
// turn among streams. Bytes that nobody has acknowledged are bounded by a window; beyond it pipes
// are left unread, and a worker that goes on writing waits, as for any slow reader.
//
// After a rank's leader ended its pipes are read to their end of file, or, if somebody else still
// holds them, until a deadline and then what they hold at that moment. Each stream ends with one
// chunk `eof`.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>

#include "agent/shim/poller.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

class LogPump {
 public:
  using Sink = std::function<void(hvdrun::v1::LogChunk)>;

  // The poller is not owned and outlives this.
  LogPump(Poller& poller, std::uint64_t window, Sink sink);
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // A non-blocking read end.
  void add(std::uint32_t rank, hvdrun::v1::Stream stream, UniqueFd pipe);
  // A stream that has never been: its end only.
  void add_ended(std::uint32_t rank, hvdrun::v1::Stream stream);

  // The rank's leader has gone: its pipes are read until this deadline at the latest.
  void end_rank(std::uint32_t rank, Nanos deadline);
  void end_all(Nanos deadline);

  void acknowledge(std::uint64_t bytes);

  // Nobody listens any more: pipes are read on, so that workers can end in peace, and thrown away.
  void discard() { is_discarding_ = true; }

  // Reads what can be read now, a bounded amount.
  void run(Nanos now);

  // There is more to read at once; run() again before waiting.
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] Nanos next_deadline() const;
  [[nodiscard]] bool is_done() const { return sources_.empty(); }

 private:
  struct Source {
    std::uint32_t rank;
    hvdrun::v1::Stream stream;
    UniqueFd pipe;
    bool is_readable = true;
    Nanos deadline = Nanos::max();
    std::optional<std::uint64_t> remaining = {};  // set at the deadline: what the pipe then held
  };
  enum class Outcome { kMore, kNothingNow, kEnded };

  [[nodiscard]] std::uint64_t open_window() const;
  void apply_deadline(Source& source, Nanos now);
  Outcome read_once(Source& source);
  void emit_end(const Source& source);

  Poller& poller_;
  const std::uint64_t window_;
  const Sink sink_;
  std::uint64_t unacknowledged_ = 0;
  bool is_discarding_ = false;
  std::list<Source> sources_;  // the next to be read is the first
};

}  // namespace hvd
