// How far the buckets of a step are, counted by the gradients that have come: which is full, and
// which may be handed over, strictly in order. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hvd {

class BucketProgress {
 public:
  enum class Arrival : std::uint8_t {
    kCounted,
    kMoreToCome,       // of the same tensor
    kCompletesBucket,  // which is then to be filled
    kTooLate,          // its bucket is filled already
  };

  // buckets: the tensors of each. num_arrivals: how often each tensor's gradient comes in a step
  // (more than once where a re-entrant checkpoint shares it); 0 counts as 1.
  BucketProgress(std::vector<std::vector<std::size_t>> buckets, std::vector<int> num_arrivals);

  [[nodiscard]] std::size_t num_buckets() const { return buckets_.size(); }
  [[nodiscard]] std::size_t bucket_of(std::size_t tensor) const { return bucket_of_[tensor]; }

  [[nodiscard]] Arrival arrive(std::size_t tensor);

  void mark_filled(std::size_t bucket) { is_filled_[bucket] = true; }
  [[nodiscard]] bool is_filled(std::size_t bucket) const { return is_filled_[bucket]; }
  // The next bucket in order, once, if it is filled.
  [[nodiscard]] std::optional<std::size_t> take_next();
  // How many have been taken: the next one's index.
  [[nodiscard]] std::size_t num_taken() const { return num_taken_; }

  // Tensors of the bucket that have not come as often as they should.
  [[nodiscard]] std::vector<std::size_t> lacking(std::size_t bucket) const;

  // The next step.
  void reset();

 private:
  const std::vector<std::vector<std::size_t>> buckets_;
  const std::vector<int> num_arrivals_;
  std::vector<std::size_t> bucket_of_;
  std::vector<int> num_arrived_;          // by tensor
  std::vector<std::size_t> num_lacking_;  // by bucket
  std::vector<bool> is_filled_;
  std::size_t num_taken_ = 0;
};

}  // namespace hvd
