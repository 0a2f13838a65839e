// Writes assembled output to stdout and stderr without ever blocking the loop.
//
// One thread for each sink does plain write(2), because nothing else is safe on a descriptor that
// hvdrun shares with the user's shell: O_NONBLOCK would be set for every process on that terminal
// or pipe, and a write after poll() may still block (poll promises a pipe PIPE_BUF bytes only until
// another process fills it, a terminal promises nothing). So a stalled terminal stalls its thread;
// the loop only sees that bytes are not yet written. stdout and stderr have a thread each, so that
// a stalled pager does not hide errors; where both are one sink, one thread keeps the order.
//
// Memory: what is queued is what the caller has submitted and not seen written. It returns credits
// only from `on_written`, so the queue is bounded by the credits (and the prefixes put in).
//
// Thread: construction, submit(), flush() and destruction on the loop's; callbacks run there.
// Destruction waits for no write: a thread that is stuck in one is left behind, and touches the
// loop no more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/loop.h"
#include "launcher/line_assembler.h"

namespace hvd {

// What the two descriptors are; for the LineAssembler.
[[nodiscard]] SinkTraits sink_traits(int stdout_fd, int stderr_fd);

class OutputWriter {
 public:
  // Called once for each sink that cannot be written any more: EPIPE, ENOSPC, EIO, ... From then on
  // its bytes are thrown away (and count as written, so that no worker waits for them).
  using OnBroken = std::function<void(bool is_stderr, int errno_value)>;

  // The descriptors stay the caller's and must outlive the process's writes.
  OutputWriter(Loop& loop, int stdout_fd, int stderr_fd, OnBroken on_broken);
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  // Queues a batch. `on_written` runs when every byte of it, and of all batches before it in its
  // sinks, has been written; for an empty batch it is posted at once.
  void submit(OutputBatch batch, std::function<void()> on_written);

  // Bytes submitted and not yet written.
  [[nodiscard]] std::size_t num_queued() const { return num_queued_; }

  // Waits until all that was submitted is written; false if the deadline came first.
  [[nodiscard]] Task<bool> flush(SteadyTime deadline);

 private:
  class Sink;
  struct Batch {
    std::size_t num_open = 0;  // segments not yet written
    std::function<void()> on_written;
  };

  void push(bool is_stderr, std::string bytes, std::uint64_t batch);
  void segment_done(std::uint64_t batch, std::size_t num_bytes);
  void sink_done(bool is_stderr, std::uint64_t batch, std::size_t num_bytes, int error);

  Loop& loop_;  // not owned, outlives this
  const OnBroken on_broken_;
  std::unordered_map<std::uint64_t, Batch> batches_;
  std::uint64_t last_batch_ = 0;
  std::size_t num_queued_ = 0;
  Event idle_;  // set while no batch is open
  // What a posted completion finds the writer by; gone with it.
  const std::shared_ptr<OutputWriter*> self_;
  // Shared by this object and the sink's thread, which may be stuck in write(2) when this object
  // goes.
  std::vector<std::shared_ptr<Sink>> sinks_;
};

}  // namespace hvd
