#include "training/petrv2/trainer/rank_agreement.h"

#include "runtime/worker_exit.h"
#include "training/formats/crc32c.h"

namespace hvd::petrv2 {
namespace {

constexpr std::size_t kNumWishes = 3;

}  // namespace

Result<Agreement> RankAgreement::agree(const StepWishes& wishes,
                                       const std::vector<double>& values) {
  std::vector<double> message = {wishes.wants_stop ? 1.0 : 0.0, wishes.wants_save ? 1.0 : 0.0,
                                 wishes.has_failed ? 1.0 : 0.0};
  message.insert(message.end(), values.begin(), values.end());
  const Reduction average{ReduceOp::kAverage};
  if (auto done = communicator_.all_reduce(message.data(), message.size(), DataType::kFloat64,
                                           average, call_);
      !done) {
    return collective_error(communicator_, done.error());
  }
  return Agreement{{message[0] > 0, message[1] > 0, message[2] > 0},
                   {message.begin() + kNumWishes, message.end()}};
}

Result<void> RankAgreement::check_all_ready(const Result<void>& own, std::string_view what) {
  const auto agreed = agree({false, false, !own}, {});
  if (!own) return own;
  if (!agreed) return tl::unexpected(agreed.error());
  if (!agreed->wishes.has_failed) return {};
  return worker_error(WorkerExit::kData, "another rank could not {}", what);
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
