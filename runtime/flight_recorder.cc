#include "runtime/flight_recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace hvd {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* state_name(FlightState state) {
  switch (state) {
    case FlightState::kScheduled:
      return "scheduled";
    case FlightState::kStarted:
      return "started";
    case FlightState::kCompleted:
      return "completed";
  }
  return "";
}

OrderedJson time_or_null(Nanos time) {
  return time == Nanos::zero() ? OrderedJson(nullptr) : OrderedJson(time.count());
}

OrderedJson entry_json(const FlightEntry& entry) {
  return {{"record_id", entry.sequence - 1},
          {"collective_seq_id", entry.sequence},
          {"op_id", entry.sequence},
          {"profiling_name", entry.operation},
          {"bucket", entry.bucket < 0 ? OrderedJson(nullptr) : OrderedJson(entry.bucket)},
          {"bytes", entry.num_bytes},
          {"state", state_name(entry.state)},
          {"time_created_ns", entry.created.count()},
          {"time_discovered_started_ns", time_or_null(entry.started)},
          {"time_discovered_completed_ns", time_or_null(entry.completed)},
          {"timeout_ms", entry.timeout.count()}};
}

}  // namespace

FlightRecorder::FlightRecorder(std::size_t capacity)
    : capacity_(std::max<std::size_t>(capacity, 1)) {}

std::uint64_t FlightRecorder::schedule(std::string operation, int bucket, std::uint64_t num_bytes,
                                       std::chrono::milliseconds timeout) {
  FlightEntry entry;
  entry.operation = std::move(operation);
  entry.bucket = bucket;
  entry.num_bytes = num_bytes;
  entry.timeout = timeout;
  entry.created = boottime_now();
  const std::lock_guard lock(mutex_);
  entry.sequence = ++last_;
  if (ring_.size() < capacity_) {
    ring_.push_back(std::move(entry));
  } else {
    ring_[(last_ - 1) % capacity_] = std::move(entry);
  }
  return last_;
}

// Null for what has left the ring, or was never in it.
FlightEntry* FlightRecorder::find(std::uint64_t sequence) {
  if (sequence == 0 || sequence > last_ || last_ - sequence >= ring_.size()) return nullptr;
  return &ring_[(sequence - 1) % capacity_];
}

void FlightRecorder::mark_started(std::uint64_t sequence, Nanos at) {
  const std::lock_guard lock(mutex_);
  FlightEntry* const entry = find(sequence);
  if (entry == nullptr || entry->state != FlightState::kScheduled) return;
  entry->state = FlightState::kStarted;
  entry->started = at;
}

void FlightRecorder::mark_completed(std::uint64_t sequence, Nanos at) {
  const std::lock_guard lock(mutex_);
  FlightEntry* const entry = find(sequence);
  if (entry == nullptr || entry->state == FlightState::kCompleted) return;
  entry->state = FlightState::kCompleted;
  entry->completed = at;
}

std::vector<FlightEntry> FlightRecorder::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<FlightEntry> result(ring_);
  const auto oldest = static_cast<std::ptrdiff_t>(ring_.size() < capacity_ ? 0 : last_ % capacity_);
  std::rotate(result.begin(), result.begin() + oldest, result.end());
  return result;
}

std::string FlightRecorder::json(const FlightHeader& header) const {
  OrderedJson dump = {{"version", "1.0"},    {"rank", header.rank},
                      {"size", header.size}, {"generation", header.generation},
                      {"host", header.host}, {"entries", OrderedJson::array()}};
  for (const FlightEntry& entry : entries()) dump["entries"].push_back(entry_json(entry));
  // Names are bytes of the program's: what is no UTF-8 must not cost the dump.
  return dump.dump(1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace hvd
