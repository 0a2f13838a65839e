// The two ends of a byte stream between neighbouring ranks, as an algorithm sees them: it says what
// may be sent and where received bytes go, tcp_operation moves them. No I/O here.
#pragma once

#include <cstddef>
#include <span>

namespace hvd {

class Outgoing {
 public:
  Outgoing() = default;
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;
  virtual ~Outgoing() = default;

  // What may go now; empty where it waits for something that is still to be received.
  [[nodiscard]] virtual std::span<const std::byte> ready() = 0;
  virtual void sent(std::size_t bytes) = 0;
  [[nodiscard]] virtual bool is_sent() const = 0;
};

class Incoming {
 public:
  Incoming() = default;
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  virtual ~Incoming() = default;

  // Where the next bytes go; not empty until is_received().
  [[nodiscard]] virtual std::span<std::byte> room() = 0;
  virtual void received(std::size_t bytes) = 0;
  [[nodiscard]] virtual bool is_received() const = 0;
};

// One block of memory. Not owned, outlives this.
class OutgoingBlock final : public Outgoing {
 public:
  explicit OutgoingBlock(std::span<const std::byte> block) : left_(block) {}
  std::span<const std::byte> ready() override { return left_; }
  void sent(std::size_t bytes) override { left_ = left_.subspan(bytes); }
  bool is_sent() const override { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

class IncomingBlock final : public Incoming {
 public:
  explicit IncomingBlock(std::span<std::byte> block) : block_(block) {}
  std::span<std::byte> room() override { return block_.subspan(num_received_); }
  void received(std::size_t bytes) override { num_received_ += bytes; }
  bool is_received() const override { return num_received_ == block_.size(); }
  [[nodiscard]] std::span<const std::byte> so_far() const { return block_.first(num_received_); }

 private:
  std::span<std::byte> block_;
  std::size_t num_received_ = 0;
};

// Passes on what `from` has received so far. Not owned, outlives this.
class OutgoingCopy final : public Outgoing {
 public:
  explicit OutgoingCopy(const IncomingBlock* from) : from_(from) {}
  std::span<const std::byte> ready() override { return from_->so_far().subspan(num_sent_); }
  void sent(std::size_t bytes) override { num_sent_ += bytes; }
  bool is_sent() const override {
    return from_->is_received() && num_sent_ == from_->so_far().size();
  }

 private:
  const IncomingBlock* from_;
  std::size_t num_sent_ = 0;
};

}  // namespace hvd
