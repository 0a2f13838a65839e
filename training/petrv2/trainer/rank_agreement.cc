#include "training/petrv2/trainer/rank_agreement.h"

#include "runtime/worker_exit.h"
#include "training/formats/crc32c.h"

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

Result<void> RankAgreement::check_same_job(const std::string& description) {
  const std::uint32_t own = crc32c(description);
  std::vector<std::uint8_t> all(sizeof own * static_cast<std::size_t>(communicator_.size()));
  if (auto done = communicator_.all_gather(&own, all.data(), sizeof own, DataType::kUint8, call_);
      !done) {
    return collective_error(communicator_, done.error());
  }
  std::vector<int> others;
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    const auto* first = all.data();
    const auto* other = first + sizeof own * static_cast<std::size_t>(rank);
    if (!std::equal(first, first + sizeof own, other)) others.push_back(rank);
  }
  if (others.empty()) return {};
  return worker_error(WorkerExit::kMismatch,
                      "the ranks do not have the same job: ranks {} differ from rank 0 in program, "
                      "configuration, options or data set; rank {} has {}",
                      fmt::join(others, ", "), communicator_.rank(), description);
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
