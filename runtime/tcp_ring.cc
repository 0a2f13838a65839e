#include "runtime/tcp_ring.h"

#include <algorithm>
#include <cstring>

namespace hvd {

BlockRange block_range(std::size_t count, int num_parts, int index) {
  const auto parts = static_cast<std::size_t>(num_parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t small = count / parts;
  const std::size_t num_large = count % parts;
  return {i * small + std::min(i, num_large), small + (i < num_large ? 1 : 0)};
}

TcpRing::TcpRing(int rank, int size, Halves halves, const Data& data)
    : rank_(rank),
      size_(size),
      data_(data),
      starts_by_gathering_(halves == Halves::kGather),
      num_reduce_steps_(starts_by_gathering_ ? 0 : size - 1),
      num_steps_(num_reduce_steps_ + (halves == Halves::kReduce ? 0 : size - 1)) {
  skip_empty_blocks();
}

// The reducing half ends with the own block; the gathering half begins with the previous rank's.
int TcpRing::in_block(int step) const {
  const int back = is_reducing(step) ? 2 + step : 1 + step - num_reduce_steps_;
  return (rank_ - back + 2 * size_) % size_;
}

int TcpRing::out_block(int step) const {
  if (step > 0) return in_block(step - 1);
  return starts_by_gathering_ ? rank_ : (rank_ - 1 + size_) % size_;
}

std::size_t TcpRing::unit(int step) const {
  return is_reducing(step) ? data_.plan->accumulator_size : data_.element_size;
}

std::byte* TcpRing::place(int step, int block) const {
  const std::size_t offset = block_range(data_.count, size_, block).offset * unit(step);
  return (is_reducing(step) ? data_.accumulators : data_.elements) + offset;
}

// Steps with nothing to move (fewer elements than ranks) are over at once.
void TcpRing::skip_empty_blocks() {
  while (in_step_ < num_steps_ && block_range(data_.count, size_, in_block(in_step_)).length == 0) {
    ++in_step_;
  }
  while (out_step_ < num_steps_ &&
         block_range(data_.count, size_, out_block(out_step_)).length == 0) {
    ++out_step_;
  }
}

std::span<std::byte> TcpRing::room() {
  const int block = in_block(in_step_);
  const std::size_t all = block_range(data_.count, size_, block).length * unit(in_step_);
  if (!is_reducing(in_step_)) return {place(in_step_, block) + in_bytes_, all - in_bytes_};
  const std::size_t left = all - in_bytes_ - in_carry_;
  return {data_.scratch->bytes.get() + in_carry_, std::min(left, RingScratch::kBytes - in_carry_)};
}

void TcpRing::received(std::size_t bytes) {
  if (is_reducing(in_step_)) {
    combine(bytes);
  } else {
    in_bytes_ += bytes;
  }
  const std::size_t length = block_range(data_.count, size_, in_block(in_step_)).length;
  if (in_bytes_ < length * unit(in_step_)) return;
  ++in_step_;
  in_bytes_ = 0;
  skip_empty_blocks();
}

// Whole elements are combined, what is left of one waits for its rest.
void TcpRing::combine(std::size_t bytes) {
  const ReductionPlan& plan = *data_.plan;
  std::byte* const scratch = data_.scratch->bytes.get();
  const std::size_t there = in_carry_ + bytes;
  const std::size_t count = there / plan.accumulator_size;
  const std::size_t whole = count * plan.accumulator_size;
  std::byte* const own = place(in_step_, in_block(in_step_)) + in_bytes_;
  plan.combine(own, scratch, own, count);
  if (in_step_ == num_reduce_steps_ - 1) {
    std::byte* const reduced =
        data_.reduced + in_bytes_ / plan.accumulator_size * plan.element_size;
    if (plan.has_store || reduced != own) plan.store(reduced, own, count);
  }
  in_bytes_ += whole;
  in_carry_ = there - whole;
  if (in_carry_ > 0) std::memmove(scratch, scratch + whole, in_carry_);
}

// How much of the outgoing block is there: all of the first, of a later one what has been received.
std::size_t TcpRing::num_bytes_ready() const {
  const std::size_t all =
      block_range(data_.count, size_, out_block(out_step_)).length * unit(out_step_);
  if (out_step_ == 0 || in_step_ > out_step_ - 1) return all;
  if (in_step_ < out_step_ - 1) return 0;
  // The last reduced block goes out as elements.
  return in_bytes_ / unit(in_step_) * unit(out_step_) +
         (is_reducing(in_step_) ? 0 : in_bytes_ % unit(in_step_));
}

std::span<const std::byte> TcpRing::ready() {
  if (is_sent()) return {};
  return {place(out_step_, out_block(out_step_)) + out_bytes_, num_bytes_ready() - out_bytes_};
}

void TcpRing::sent(std::size_t bytes) {
  out_bytes_ += bytes;
  const std::size_t length = block_range(data_.count, size_, out_block(out_step_)).length;
  if (out_bytes_ < length * unit(out_step_)) return;
  ++out_step_;
  out_bytes_ = 0;
  skip_empty_blocks();
}

}  // namespace hvd
