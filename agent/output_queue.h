// Output of this node's workers between the shim and the launcher. Chunks leave in the order in
// which they came, as credits allow; what does not fit in memory goes to the spool, what does not
// fit there is dropped and counted in the next chunk of the same rank and stream. An end of stream
// is never dropped. Thread: the loop's. Does no sending.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "agent/spool.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

class OutputQueue {
 public:
  struct Limits {
    std::uint64_t memory_bytes = 8u << 20;
    std::uint64_t batch_bytes = 256u << 10;
  };

  OutputQueue(Spool spool, Limits limits);

  void push(hvdrun::v1::LogChunk chunk);
  void add_credit(std::uint64_t bytes) { credit_ += bytes; }
  // For what else is sent on the same credit.
  [[nodiscard]] std::uint64_t credit() const { return credit_; }
  void spend_credit(std::uint64_t bytes) { credit_ -= bytes; }

  // The next batch: not more data than the credit, which it takes, nor than a batch may hold. Empty
  // if there is nothing to send now. A chunk larger than the credit is split.
  [[nodiscard]] hvdrun::v1::OutputReply next_batch();

  [[nodiscard]] bool is_empty() const { return memory_.empty() && spool_.is_empty(); }
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] std::uint64_t spooled_bytes() const { return spool_.num_bytes(); }

 private:
  using StreamKey = std::pair<std::uint32_t, int>;  // rank, stream

  void keep(hvdrun::v1::LogChunk chunk);
  void refill();
  // Moves one chunk, or as much of it as there is room for; the bytes moved, nullopt for none.
  [[nodiscard]] std::optional<std::uint64_t> take_front(std::uint64_t room,
                                                        hvdrun::v1::OutputReply* batch);

  const Limits limits_;
  std::deque<hvdrun::v1::LogChunk> memory_;  // the oldest
  Spool spool_;                              // what came after
  std::deque<hvdrun::v1::LogChunk> late_;    // ends of streams that the spool had no room for
  std::map<StreamKey, std::uint64_t> dropped_;
  std::uint64_t memory_bytes_ = 0;
  std::uint64_t credit_ = 0;
};

}  // namespace hvd
