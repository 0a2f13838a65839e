// The last collectives of this rank and how far each came, kept in a ring, written down when a
// stall, a time limit, an abort or a person asks. Reading it calls nothing of CUDA or NCCL: states
// are what the communication thread has found out so far.
//
// Threads: any; no call blocks for long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hvd {

enum class FlightState : std::uint8_t { kScheduled, kStarted, kCompleted };

struct FlightEntry {
  std::uint64_t sequence = 0;  // from 1, the same collective has the same number on every rank
  std::string operation;       // "nccl:all_reduce", "tcp:broadcast"
  int bucket = -1;             // -1: of no bucket
  std::uint64_t num_bytes = 0;
  std::chrono::milliseconds timeout{0};
  FlightState state = FlightState::kScheduled;
  Nanos created{}, started{}, completed{};  // CLOCK_BOOTTIME; 0: not found out
};

// Whose recorder it is: the head of the dump.
struct FlightHeader {
  int rank = 0;
  int size = 1;
  std::uint32_t generation = 0;
  std::string host;
};

class FlightRecorder {
 public:
  static constexpr std::size_t kDefaultCapacity = 2000;
  explicit FlightRecorder(std::size_t capacity = kDefaultCapacity);

  // The collective's sequence number.
  std::uint64_t schedule(std::string operation, int bucket, std::uint64_t num_bytes,
                         std::chrono::milliseconds timeout);
  void mark_started(std::uint64_t sequence, Nanos at);
  void mark_completed(std::uint64_t sequence, Nanos at);

  // Oldest first.
  [[nodiscard]] std::vector<FlightEntry> entries() const;
  // The dump: one JSON object with the field names of PyTorch's recorder where they apply
  // (collective_seq_id, profiling_name, state, time_created_ns, ...).
  [[nodiscard]] std::string json(const FlightHeader& header) const;

 private:
  [[nodiscard]] FlightEntry* find(std::uint64_t sequence);

  mutable std::mutex mutex_;
  std::vector<FlightEntry> ring_;  // entry i stands at (sequence - 1) % capacity
  const std::size_t capacity_;
  std::uint64_t last_ = 0;
};

}  // namespace hvd
