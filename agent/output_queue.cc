#include "agent/output_queue.h"

#include <algorithm>
#include <utility>

namespace hvd {

namespace v1 = hvdrun::v1;

namespace {

// What a chunk costs beside its data, so that a flood of single bytes is bounded too.
constexpr std::uint64_t kChunkOverhead = 128;

std::uint64_t memory_cost(const v1::LogChunk& chunk) {
  return chunk.data().size() + kChunkOverhead;
}

}  // namespace

OutputQueue::OutputQueue(Spool spool, Limits limits) : limits_(limits), spool_(std::move(spool)) {}

void OutputQueue::push(v1::LogChunk chunk) {
  const StreamKey key{chunk.rank(), chunk.stream()};
  if (const auto found = dropped_.find(key); found != dropped_.end()) {
    chunk.set_dropped(chunk.dropped() + found->second);
    dropped_.erase(found);
  }
  const bool fits = memory_bytes_ + memory_cost(chunk) <= limits_.memory_bytes;
  if (spool_.is_empty() && fits) return keep(std::move(chunk));
  if (spool_.append(chunk.SerializeAsString())) return;
  dropped_[key] += chunk.dropped() + chunk.data().size();
  if (!chunk.eof()) return;
  // One for each stream, so bounded; it carries the count of all that was dropped before it.
  chunk.clear_data();
  chunk.set_dropped(dropped_[key]);
  dropped_.erase(key);
  late_.push_back(std::move(chunk));
}

void OutputQueue::keep(v1::LogChunk chunk) {
  memory_bytes_ += memory_cost(chunk);
  memory_.push_back(std::move(chunk));
}

void OutputQueue::refill() {
  while (!spool_.is_empty() && memory_bytes_ < limits_.batch_bytes) {
    const auto record = spool_.take();
    v1::LogChunk chunk;
    if (record && chunk.ParseFromString(*record)) keep(std::move(chunk));
  }
  if (!spool_.is_empty()) return;
  while (!late_.empty()) {
    keep(std::move(late_.front()));
    late_.pop_front();
  }
}

v1::OutputReply OutputQueue::next_batch() {
  v1::OutputReply batch;
  std::uint64_t size = 0;
  while (size < limits_.batch_bytes) {
    if (memory_.empty()) refill();
    if (memory_.empty()) break;
    const auto taken = take_front(std::min(limits_.batch_bytes - size, credit_), &batch);
    if (!taken) break;
    size += *taken + kChunkOverhead;
    credit_ -= *taken;
  }
  return batch;
}

std::optional<std::uint64_t> OutputQueue::take_front(std::uint64_t room, v1::OutputReply* batch) {
  v1::LogChunk& front = memory_.front();
  const std::uint64_t size = front.data().size();
  if (size <= room) {
    memory_bytes_ -= memory_cost(front);
    *batch->add_chunks() = std::move(front);
    memory_.pop_front();
    return size;
  }
  if (room == 0) return std::nullopt;
  v1::LogChunk* head = batch->add_chunks();
  *head = front;
  head->mutable_data()->resize(room);
  head->set_eof(false);
  front.mutable_data()->erase(0, room);
  front.set_dropped(0);
  memory_bytes_ -= room;
  return room;
}

}  // namespace hvd
