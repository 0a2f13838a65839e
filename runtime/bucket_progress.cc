#include "runtime/bucket_progress.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

std::vector<int> at_least_one(std::vector<int> counts) {
  for (int& count : counts) count = std::max(count, 1);
  return counts;
}

}  // namespace

BucketProgress::BucketProgress(std::vector<std::vector<std::size_t>> buckets,
                               std::vector<int> num_arrivals)
    : buckets_(std::move(buckets)),
      num_arrivals_(at_least_one(std::move(num_arrivals))),
      bucket_of_(num_arrivals_.size()) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const std::size_t tensor : buckets_[bucket]) bucket_of_[tensor] = bucket;
  }
  reset();
}

void BucketProgress::reset() {
  num_arrived_.assign(num_arrivals_.size(), 0);
  num_lacking_.clear();
  for (const auto& tensors : buckets_) num_lacking_.push_back(tensors.size());
  is_filled_.assign(buckets_.size(), false);
  num_taken_ = 0;
}

BucketProgress::Arrival BucketProgress::arrive(std::size_t tensor) {
  const std::size_t bucket = bucket_of_[tensor];
  if (is_filled_[bucket]) return Arrival::kTooLate;
  if (++num_arrived_[tensor] != num_arrivals_[tensor]) return Arrival::kMoreToCome;
  return --num_lacking_[bucket] == 0 ? Arrival::kCompletesBucket : Arrival::kCounted;
}

std::optional<std::size_t> BucketProgress::take_next() {
  if (num_taken_ == buckets_.size() || !is_filled_[num_taken_]) return std::nullopt;
  return num_taken_++;
}

std::vector<std::size_t> BucketProgress::lacking(std::size_t bucket) const {
  std::vector<std::size_t> tensors;
  for (const std::size_t tensor : buckets_[bucket]) {
    if (num_arrived_[tensor] < num_arrivals_[tensor]) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace hvd
