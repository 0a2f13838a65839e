#include "hvdrun/communicator.h"

#include <cstring>
#include <mutex>

#include "runtime/reduction.h"

namespace hvd {
namespace {

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  Result<void> all_reduce(void* data, std::size_t count, DataType type, const Reduction& reduction,
                          const Call& /*call*/) override {
    return reduce(data, data, count, type, reduction);
  }

  Result<void> broadcast(void* /*data*/, std::size_t /*count*/, DataType /*type*/, int root,
                         const Call& /*call*/) override {
    if (root != 0) return make_error("broadcast: there is no rank {} among 1", root);
    return check();
  }

  Result<void> all_gather(const void* input, void* output, std::size_t count, DataType type,
                          const Call& /*call*/) override {
    if (count > 0 && input != output) std::memcpy(output, input, count * size_of(type));
    return check();
  }

  Result<void> reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                              const Reduction& reduction, const Call& /*call*/) override {
    if (count > 0) std::memcpy(output, input, count * size_of(type));
    return reduce(output, output, count, type, reduction);
  }

  Result<void> barrier(const Call& /*call*/) override { return check(); }

  void abort(std::string_view reason) override {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = CommunicatorFailure{CommunicatorFailure::Kind::kAborted, 0,
                                   fmt::format("rank 0 aborted: {}", reason)};
  }

  Result<void> finalize(const Call& /*call*/) override { return check(); }

  std::optional<CommunicatorFailure> failure() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  Result<void> check() const {
    if (const auto failed = failure()) return make_error("{}", failed->message);
    return {};
  }

  // One rank's reduction still scales, and rounds as several would.
  Result<void> reduce(void* to, const void* from, std::size_t count, DataType type,
                      const Reduction& reduction) const {
    const auto plan = plan_reduction(type, reduction, 1);
    if (!plan) return tl::unexpected(plan.error());
    if (plan->prescale != 1) {
      // By way of accumulators, piece by piece.
      constexpr std::size_t kPiece = 512;
      alignas(64) std::byte accumulators[kPiece * sizeof(double)];
      for (std::size_t i = 0; i < count; i += kPiece) {
        const std::size_t length = std::min(kPiece, count - i);
        const std::size_t offset = i * plan->element_size;
        plan->load(accumulators, static_cast<const std::byte*>(from) + offset, length);
        plan->store(static_cast<std::byte*>(to) + offset, accumulators, length);
      }
    }
    return check();
  }

  mutable std::mutex mutex_;
  std::optional<CommunicatorFailure> failure_;  // guarded by mutex_
};

}  // namespace

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kUint8:
      return 1;
  }
  return 0;
}

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return "float64";
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBfloat16:
      return "bfloat16";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kUint8:
      return "uint8";
  }
  return "an unknown type";
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kMin:
      return "minimum";
    case ReduceOp::kMax:
      return "maximum";
  }
  return "an unknown reduction";
}

std::unique_ptr<Communicator> single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace hvd
