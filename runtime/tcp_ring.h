// The ring algorithms as a pair of streams, from the previous rank and to the next. Pure.
//
// The elements are cut into one block for each rank. In the reducing half each block travels once
// round the ring, from rank b+1 to rank b, and every rank on its way adds its own part; so the
// order of the sum is b+1, b+2, ..., b whatever the timing. In the gathering half the finished
// blocks go round once more. A rank sends out in step k+1 the block that it receives in step k,
// byte by byte as it is ready: that is the whole pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/reduction.h"
#include "runtime/tcp_stream.h"

namespace hvd {

// The part `index` of `count` elements in `num_parts` nearly equal ones.
struct BlockRange {
  std::size_t offset = 0;
  std::size_t length = 0;
};
[[nodiscard]] BlockRange block_range(std::size_t count, int num_parts, int index);

// Received pieces of the reducing half, before they are combined; small enough for the cache.
struct RingScratch {
  static constexpr std::size_t kBytes = 256 * 1024;
  std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kBytes);
};

class TcpRing final : public Incoming, public Outgoing {
 public:
  enum class Halves { kReduce, kGather, kBoth };

  // Pointers are not owned and outlive this.
  struct Data {
    std::size_t count = 0;                // elements of all blocks
    std::size_t element_size = 0;         // bytes, in the gathering half
    std::byte* elements = nullptr;        // all blocks: gathered here
    std::byte* accumulators = nullptr;    // all blocks: reduced here; may be `elements`
    std::byte* reduced = nullptr;         // this rank's finished block, as elements
    const ReductionPlan* plan = nullptr;  // of the reducing half
    RingScratch* scratch = nullptr;       // the same
  };

  TcpRing(int rank, int size, Halves halves, const Data& data);

  std::span<std::byte> room() override;
  void received(std::size_t bytes) override;
  bool is_received() const override { return in_step_ == num_steps_; }

  std::span<const std::byte> ready() override;
  void sent(std::size_t bytes) override;
  bool is_sent() const override { return out_step_ == num_steps_; }

 private:
  [[nodiscard]] bool is_reducing(int step) const { return step < num_reduce_steps_; }
  [[nodiscard]] int in_block(int step) const;
  [[nodiscard]] int out_block(int step) const;
  [[nodiscard]] std::size_t unit(int step) const;
  [[nodiscard]] std::byte* place(int step, int block) const;
  [[nodiscard]] std::size_t num_bytes_ready() const;
  void combine(std::size_t bytes);
  void skip_empty_blocks();

  const int rank_;
  const int size_;
  const Data data_;
  const bool starts_by_gathering_;
  const int num_reduce_steps_;
  const int num_steps_;

  int in_step_ = 0;
  std::size_t in_bytes_ = 0;  // of this step's block, combined or in place
  std::size_t in_carry_ = 0;  // bytes of a part of an element, at the start of the scratch
  int out_step_ = 0;
  std::size_t out_bytes_ = 0;  // of this step's block
};

}  // namespace hvd
