#include "runtime/bucket_plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hvd {
namespace {

using Bucket = std::vector<std::size_t>;

std::size_t num_bytes(std::span<const PlannedTensor> tensors, const Bucket& bucket) {
  std::size_t sum = 0;
  for (const std::size_t i : bucket) sum += tensors[i].num_bytes;
  return sum;
}

// The tensors of the first bucket: a beginning of the order.
std::size_t length_of_first(std::span<const PlannedTensor> tensors, std::size_t limit) {
  std::size_t length = 0;
  std::size_t sum = 0;
  while (length < tensors.size() && tensors[length].kind == tensors.front().kind) {
    sum += tensors[length].num_bytes;
    if (length > 0 && sum > limit) break;
    ++length;
  }
  return length;
}

// One open bucket for each kind, closed when the next tensor would pass the limit.
void fill_by_kind(std::span<const PlannedTensor> tensors, std::size_t begin, std::size_t limit,
                  std::vector<Bucket>& buckets) {
  struct Open {
    Bucket bucket;
    std::size_t sum = 0;
  };
  std::map<int, Open> open_buckets;
  for (std::size_t i = begin; i < tensors.size(); ++i) {
    Open& open = open_buckets[tensors[i].kind];
    if (!open.bucket.empty() && open.sum + tensors[i].num_bytes > limit) {
      buckets.push_back(std::exchange(open, {}).bucket);
    }
    open.bucket.push_back(i);
    open.sum += tensors[i].num_bytes;
  }
  for (auto& [kind, open] : open_buckets) buckets.push_back(std::move(open.bucket));
}

// Ready when the last of its tensors is.
void sort_by_readiness(std::vector<Bucket>& buckets) {
  std::sort(buckets.begin(), buckets.end(),
            [](const Bucket& a, const Bucket& b) { return a.back() < b.back(); });
}

void split_last(std::span<const PlannedTensor> tensors, std::size_t limit,
                std::vector<Bucket>& buckets) {
  Bucket& last = buckets.back();
  if (last.size() < 2 || num_bytes(tensors, last) <= 2 * limit) return;
  std::size_t begin = last.size() - 1;
  std::size_t sum = tensors[last[begin]].num_bytes;
  while (begin > 1 && sum + tensors[last[begin - 1]].num_bytes <= limit) {
    sum += tensors[last[--begin]].num_bytes;
  }
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(begin);
  Bucket end(middle, last.end());
  last.erase(middle, last.end());
  buckets.push_back(std::move(end));
}

}  // namespace

std::vector<std::vector<std::size_t>> plan_buckets(std::span<const PlannedTensor> tensors,
                                                   const BucketLimits& limits) {
  if (tensors.empty()) return {};
  const std::size_t length = length_of_first(tensors, limits.first_bytes);
  std::vector<Bucket> buckets;
  fill_by_kind(tensors, length, limits.bytes, buckets);
  if (!buckets.empty()) {
    sort_by_readiness(buckets);
    split_last(tensors, limits.first_bytes, buckets);
    sort_by_readiness(buckets);
  }
  Bucket first(length);
  for (std::size_t i = 0; i < length; ++i) first[i] = i;
  buckets.insert(buckets.begin(), std::move(first));
  return buckets;
}

}  // namespace hvd
