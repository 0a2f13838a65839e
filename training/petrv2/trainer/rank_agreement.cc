#include "training/petrv2/trainer/rank_agreement.h"

#include <algorithm>

#include "runtime/worker_exit.h"

namespace hvd::petrv2 {
namespace {

constexpr std::size_t kNumFlags = 3;  // stop, save, has values

}  // namespace

std::size_t num_riders(std::size_t num_values) { return kNumFlags + num_values; }

std::vector<double> to_riders(const StepWishes& wishes, const std::vector<double>& values,
                              std::size_t num_values) {
  std::vector<double> riders = {wishes.wants_stop ? 1.0 : 0.0, wishes.wants_save ? 1.0 : 0.0,
                                values.empty() ? 0.0 : 1.0};
  riders.insert(riders.end(), values.begin(), values.end());
  riders.resize(num_riders(num_values));
  return riders;
}

Agreement from_riders(std::span<const double> means) {
  Agreement agreement{{means[0] > 0, means[1] > 0}, {}};
  if (means[2] > 0) agreement.means.assign(means.begin() + kNumFlags, means.end());
  return agreement;
}

Result<Agreement> RankAgreement::agree(const std::vector<double>& values) {
  std::vector<double> message = to_riders({}, values, values.size());
  if (auto done = communicator_.all_reduce(message.data(), message.size(), DataType::kFloat64,
                                           {ReduceOp::kAverage, 1}, call_);
      !done) {
    return collective_error(communicator_, done.error());
  }
  return from_riders(message);
}

Result<void> RankAgreement::check_all_ready(const Result<void>& own) {
  if (!own) return own;
  if (auto done = communicator_.barrier(call_); !done) {
    return collective_error(communicator_, done.error());
  }
  return {};
}

// Of every rank, in the order of the ranks.
Result<std::vector<std::string>> RankAgreement::gather_texts(const std::string& own) {
  const auto num_ranks = static_cast<std::size_t>(communicator_.size());
  const auto own_size = static_cast<std::int64_t>(own.size());
  std::vector<std::int64_t> sizes(num_ranks);
  auto done = communicator_.all_gather(&own_size, sizes.data(), 1, DataType::kInt64, call_);
  const auto most = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string padded = own;
  padded.resize(most);
  std::string all(most * num_ranks, '\0');
  if (done) {
    done = communicator_.all_gather(padded.data(), all.data(), most, DataType::kUint8, call_);
  }
  if (!done) return collective_error(communicator_, done.error());
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    texts.push_back(all.substr(rank * most, static_cast<std::size_t>(sizes[rank])));
  }
  return texts;
}

Result<void> RankAgreement::check_same_job(const JobFacts& own) {
  const auto texts = gather_texts(to_text(own));
  if (!texts) return tl::unexpected(texts.error());
  std::vector<JobFacts> by_rank;
  for (const std::string& text : *texts) by_rank.push_back(facts_from(text));
  if (const auto odd = differences(by_rank)) {
    return worker_error(WorkerExit::kMismatch, "{}", *odd);
  }
  return {};
}

Result<void> RankAgreement::share_text(std::string& text) {
  std::int64_t size = static_cast<std::int64_t>(text.size());
  auto done = communicator_.broadcast(&size, 1, DataType::kInt64, 0, call_);
  text.resize(static_cast<std::size_t>(size));
  if (done && size > 0) {
    done = communicator_.broadcast(text.data(), text.size(), DataType::kUint8, 0, call_);
  }
  if (!done) return collective_error(communicator_, done.error());
  return {};
}

Result<void> RankAgreement::share_outcome(const Result<void>& of_rank_zero) {
  std::string text = of_rank_zero ? "" : of_rank_zero.error().message;
  if (auto shared = share_text(text); !shared) return shared;
  if (!of_rank_zero) return of_rank_zero;
  if (text.empty()) return {};
  return worker_error(WorkerExit::kData, "rank 0: {}", text);
}

}  // namespace hvd::petrv2
