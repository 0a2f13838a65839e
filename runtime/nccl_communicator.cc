#include "runtime/nccl_communicator.h"

#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/half_float.h"
#include "runtime/nccl_check.h"
#include "runtime/nccl_handle.h"
#include "runtime/nccl_pending.h"
#include "runtime/poll_until.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

using Kind = CommunicatorFailure::Kind;

// How often the watch looks at what is pending: time limits are seconds.
constexpr milliseconds kWatchPeriod{10};
// How long a call waits for NCCL to take it over, whatever the time limit of the operation itself.
constexpr milliseconds kEnqueueLimit{60'000};

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return ncclFloat64;
    case DataType::kFloat32:
      return ncclFloat32;
    case DataType::kFloat16:
      return ncclFloat16;
    case DataType::kBfloat16:
      return ncclBfloat16;
    case DataType::kInt32:
      return ncclInt32;
    case DataType::kInt64:
      return ncclInt64;
    case DataType::kUint8:
      return ncclUint8;
  }
  return ncclUint8;
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kAverage:
      return ncclAvg;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
  }
  return ncclSum;
}

// A factor in the type of the data, as NCCL wants it.
using Scalar = std::array<std::byte, sizeof(double)>;

template <typename T>
Scalar scalar_of(T value) {
  Scalar scalar{};
  std::memcpy(scalar.data(), &value, sizeof value);
  return scalar;
}

Result<Scalar> scalar_of(double value, DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return scalar_of(value);
    case DataType::kFloat32:
      return scalar_of(static_cast<float>(value));
    case DataType::kFloat16:
      return scalar_of(to_float16(static_cast<float>(value)));
    case DataType::kBfloat16:
      return scalar_of(to_bfloat16(static_cast<float>(value)));
    default:
      return make_error("a prescale of {} is not defined for {}: integers are reduced unscaled",
                        value, name_of(type));
  }
}

std::string describe(std::string_view operation, std::size_t count, DataType type) {
  return fmt::format("{} of {} {}", operation, count, name_of(type));
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(NcclSettings settings,
                   std::function<void(const CommunicatorFailure&)> on_failure)
      : settings_(std::move(settings)), on_failure_(std::move(on_failure)) {}
  ~NcclCommunicator() override;

  Result<void> connect();

  int rank() const override { return settings_.rank; }
  int size() const override { return settings_.size; }
  DeviceKind device_kind() const override { return DeviceKind::kCuda; }
  void* stream() const override { return stream_; }

  Result<void> all_reduce(void* data, std::size_t count, DataType type, const Reduction& reduction,
                          const Call& call) override;
  Result<void> broadcast(void* data, std::size_t count, DataType type, int root,
                         const Call& call) override;
  Result<void> all_gather(const void* input, void* output, std::size_t count, DataType type,
                          const Call& call) override;
  Result<void> reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                              const Reduction& reduction, const Call& call) override;
  Result<void> barrier(const Call& call) override;
  Result<void> wait(const Call& call) override;
  void abort(std::string_view reason) override;
  Result<void> finalize(const Call& call) override;
  std::optional<CommunicatorFailure> failure() const override;

 private:
  using NcclCall = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  using ReduceCall = std::function<ncclResult_t(ncclRedOp_t, ncclComm_t, cudaStream_t)>;

  Result<void> enqueue(std::string what, const Call& call, const NcclCall& nccl_call);
  Result<void> enqueue_reduction(std::string what, DataType type, const Reduction& reduction,
                                 const Call& call, const ReduceCall& reduce);
  Result<void> make_stream();
  Result<void> check_first_sum(milliseconds timeout);
  void watch();
  void look();
  Result<void> fail(Kind kind, std::string text);
  Result<void> fail(const NcclEnd& end, std::string_view what, milliseconds limit);
  Result<void> check() const;

  const NcclSettings settings_;
  const std::function<void(const CommunicatorFailure&)> on_failure_;
  NcclHandle handle_;
  cudaStream_t stream_ = nullptr;
  void* scratch_ = nullptr;  // one int32 on the GPU: of barriers
  // One for each factor in use, until the communicator ends. Under the handle's lock.
  std::map<std::pair<DataType, Scalar>, ncclRedOp_t> scaled_ops_;

  mutable std::mutex mutex_;  // guards all below
  NcclPending pending_;
  std::optional<CommunicatorFailure> failure_;
  bool is_closing_ = false;
  std::condition_variable wake_;

  std::thread watch_;
  std::thread abort_;  // guarded by mutex_ until the destructor
};

NcclCommunicator::~NcclCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  wake_.notify_all();
  if (watch_.joinable()) watch_.join();
  if (abort_.joinable()) abort_.join();
  handle_.abort();
  if (scratch_ != nullptr) cudaFree(scratch_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Result<void> NcclCommunicator::make_stream() {
  int lowest = 0;
  int highest = 0;
  auto done = check_cuda(cudaSetDevice(settings_.device),
                         fmt::format("GPU {} of this process", settings_.device));
  if (!done) return done;
  done = check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "stream priorities");
  if (!done) return done;
  done = check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
                    "stream for collectives");
  if (!done) return done;
  return check_cuda(cudaMalloc(&scratch_, sizeof(std::int32_t)), "memory for barriers");
}

Result<void> NcclCommunicator::connect() {
  const SteadyTime deadline = steady_clock::now() + settings_.init_timeout;
  if (auto made = make_stream(); !made) return made;
  ncclUniqueId id{};
  if (settings_.unique_id.size() != sizeof id) {
    return make_error("the NCCL id has {} bytes, not {}", settings_.unique_id.size(), sizeof id);
  }
  std::memcpy(&id, settings_.unique_id.data(), sizeof id);
  const NcclEnd end = handle_.init(settings_.rank, settings_.size, id, deadline);
  if (end.kind != NcclEnd::Kind::kOk) {
    auto failed =
        fail(end, fmt::format("init of {} ranks", settings_.size), settings_.init_timeout);
    return failed;
  }
  watch_ = std::thread([this] { watch(); });
  return check_first_sum(std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
}

// The first collective connects what NCCL had left open, and shows that sums come out right.
Result<void> NcclCommunicator::check_first_sum(milliseconds timeout) {
  const Call call{timeout, nullptr};
  std::int32_t value = settings_.rank + 1;
  auto done =
      check_cuda(cudaMemcpyAsync(scratch_, &value, sizeof value, cudaMemcpyHostToDevice, stream_),
                 "first sum");
  if (done) done = all_reduce(scratch_, 1, DataType::kInt32, {}, call);
  if (done) done = wait(call);
  if (done) {
    done =
        check_cuda(cudaMemcpy(&value, scratch_, sizeof value, cudaMemcpyDeviceToHost), "first sum");
  }
  if (!done) return done;
  const int expected = settings_.size * (settings_.size + 1) / 2;
  if (value == expected) return {};
  return fail(Kind::kInternal, fmt::format("the first NCCL sum over {} ranks is {}, not {}: this "
                                           "installation of NCCL does not work",
                                           settings_.size, value, expected));
}

Result<void> NcclCommunicator::enqueue(std::string what, const Call& call,
                                       const NcclCall& nccl_call) {
  if (auto done = check(); !done) return done;
  const auto stream = call.stream != nullptr ? static_cast<cudaStream_t>(call.stream) : stream_;
  const milliseconds limit = std::min(call.timeout, kEnqueueLimit);
  const NcclEnd end = handle_.run([&](ncclComm_t comm) { return nccl_call(comm, stream); },
                                  steady_clock::now() + limit);
  if (end.kind != NcclEnd::Kind::kOk) return fail(end, "enqueue of " + what, limit);
  Result<std::uint64_t> added;
  {
    const std::lock_guard lock(mutex_);
    added = pending_.add(std::move(what), call.timeout, stream);
  }
  wake_.notify_all();
  if (!added) return fail(Kind::kInternal, added.error().message);
  return {};
}

Result<void> NcclCommunicator::enqueue_reduction(std::string what, DataType type,
                                                 const Reduction& reduction, const Call& call,
                                                 const ReduceCall& reduce) {
  if (reduction.prescale == 1) {
    return enqueue(std::move(what), call, [&](ncclComm_t comm, cudaStream_t stream) {
      return reduce(nccl_op(reduction.op), comm, stream);
    });
  }
  const bool is_average = reduction.op == ReduceOp::kAverage;
  if (!is_average && reduction.op != ReduceOp::kSum) {
    return make_error("{}: a prescale goes with sum and average only", what);
  }
  auto scalar = scalar_of(reduction.prescale / (is_average ? size() : 1), type);
  if (!scalar) return tl::unexpected(scalar.error().within(what));
  return enqueue(std::move(what), call, [&](ncclComm_t comm, cudaStream_t stream) {
    const auto [scaled, is_new] = scaled_ops_.try_emplace({type, *scalar});
    if (is_new) {
      const ncclResult_t made = ncclRedOpCreatePreMulSum(
          &scaled->second, scalar->data(), nccl_type(type), ncclScalarHostImmediate, comm);
      if (made != ncclSuccess) return made;
    }
    return reduce(scaled->second, comm, stream);
  });
}

Result<void> NcclCommunicator::all_reduce(void* data, std::size_t count, DataType type,
                                          const Reduction& reduction, const Call& call) {
  return enqueue_reduction(describe("all_reduce", count, type), type, reduction, call,
                           [&](ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
                             return ncclAllReduce(data, data, count, nccl_type(type), op, comm,
                                                  stream);
                           });
}

Result<void> NcclCommunicator::broadcast(void* data, std::size_t count, DataType type, int root,
                                         const Call& call) {
  return enqueue(describe("broadcast", count, type), call,
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return ncclBroadcast(data, data, count, nccl_type(type), root, comm, stream);
                 });
}

Result<void> NcclCommunicator::all_gather(const void* input, void* output, std::size_t count,
                                          DataType type, const Call& call) {
  return enqueue(describe("all_gather", count, type), call,
                 [&](ncclComm_t comm, cudaStream_t stream) {
                   return ncclAllGather(input, output, count, nccl_type(type), comm, stream);
                 });
}

Result<void> NcclCommunicator::reduce_scatter(const void* input, void* output, std::size_t count,
                                              DataType type, const Reduction& reduction,
                                              const Call& call) {
  return enqueue_reduction(describe("reduce_scatter", count, type), type, reduction, call,
                           [&](ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
                             return ncclReduceScatter(input, output, count, nccl_type(type), op,
                                                      comm, stream);
                           });
}

Result<void> NcclCommunicator::barrier(const Call& call) {
  auto done = all_reduce(scratch_, 1, DataType::kInt32, {ReduceOp::kMax, 1}, call);
  if (!done) return done;
  return wait(call);
}

Result<void> NcclCommunicator::wait(const Call& call) {
  std::uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = pending_.last_added();
  }
  const auto is_complete = [&] {
    look();
    const std::lock_guard lock(mutex_);
    return pending_.last_completed() >= last;
  };
  const auto has_failed = [&] { return failure().has_value(); };
  switch (poll_until(steady_clock::now() + call.timeout, is_complete, has_failed)) {
    case PollEnd::kSettled:
    case PollEnd::kGivenUp:
      return check();
    case PollEnd::kDeadline:
      break;
  }
  std::string what = "a collective";
  {
    const std::lock_guard lock(mutex_);
    if (!pending_.is_empty()) what = pending_.oldest();
  }
  return fail({NcclEnd::Kind::kDeadline, "not every rank took part"}, what, call.timeout);
}

Result<void> NcclCommunicator::finalize(const Call& call) {
  const SteadyTime deadline = steady_clock::now() + call.timeout;
  if (auto done = barrier(call); !done) return done;
  const NcclEnd end = handle_.finalize(deadline);
  if (end.kind != NcclEnd::Kind::kOk) return fail(end, "finalize", call.timeout);
  return {};
}

void NcclCommunicator::abort(std::string_view reason) {
  (void)fail(Kind::kAborted,
             fmt::format("rank {} on {} aborted: {}", settings_.rank, settings_.host, reason));
}

std::optional<CommunicatorFailure> NcclCommunicator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Result<void> NcclCommunicator::check() const {
  if (const auto failed = failure()) return make_error("{}", failed->message);
  return {};
}

// The first failure is the one that counts; it aborts, so that nothing waits for the GPU for ever.
Result<void> NcclCommunicator::fail(Kind kind, std::string text) {
  CommunicatorFailure failed;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return make_error("{}", failure_->message);
    failure_ = CommunicatorFailure{kind, kind == Kind::kAborted ? settings_.rank : -1, text};
    failed = *failure_;
    abort_ = std::thread([this] { handle_.abort(); });
  }
  wake_.notify_all();
  if (on_failure_) on_failure_(failed);
  return make_error("{}", text);
}

Result<void> NcclCommunicator::fail(const NcclEnd& end, std::string_view what, milliseconds limit) {
  const std::string where =
      fmt::format("rank {} on {}: NCCL {}", settings_.rank, settings_.host, what);
  switch (end.kind) {
    case NcclEnd::Kind::kDeadline:
      return fail(Kind::kDeadline, fmt::format("{} was not complete within {}: {}", where,
                                               format_duration(limit), end.text));
    case NcclEnd::Kind::kError:
      return fail(end.is_remote ? Kind::kPeerLost : Kind::kInternal,
                  fmt::format("{}: {}", where, end.text));
    case NcclEnd::Kind::kAborted:
    case NcclEnd::Kind::kOk:
      break;
  }
  return fail(Kind::kAborted, fmt::format("{}: {}", where, end.text));
}

// What has completed, what is overdue, and what NCCL knows.
void NcclCommunicator::look() {
  std::optional<PendingOperation> overdue;
  Result<void> swept;
  bool has_failed = false;
  {
    const std::lock_guard lock(mutex_);
    has_failed = failure_.has_value();
    if (!has_failed) swept = pending_.sweep();
    if (const auto* late = pending_.overdue(steady_clock::now())) overdue = *late;
  }
  if (has_failed) return;
  if (!swept) return void(fail(Kind::kInternal, swept.error().message));
  const NcclEnd end = handle_.check();
  if (end.kind == NcclEnd::Kind::kError) return void(fail(end, "connection", {}));
  if (overdue) {
    (void)fail({NcclEnd::Kind::kDeadline, "not every rank took part"}, overdue->what,
               overdue->timeout);
  }
}

void NcclCommunicator::watch() {
  cudaSetDevice(settings_.device);
  std::unique_lock lock(mutex_);
  while (!is_closing_ && !failure_) {
    // An idle communicator is looked at as well: a peer may go while nothing is under way.
    wake_.wait_for(lock, pending_.is_empty() ? 20 * kWatchPeriod : kWatchPeriod);
    if (is_closing_ || failure_) break;
    lock.unlock();
    look();
    lock.lock();
  }
}

}  // namespace

Result<std::string> nccl_unique_id() {
  ncclUniqueId id{};
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) {
    return make_error("NCCL gives no id: {} ({})", ncclGetErrorString(result),
                      ncclGetLastError(nullptr));
  }
  return std::string(static_cast<const char*>(id.internal), sizeof id);
}

Result<std::unique_ptr<Communicator>> nccl_connect(
    const NcclSettings& settings, std::function<void(const CommunicatorFailure&)> on_failure) {
  auto communicator = std::make_unique<NcclCommunicator>(settings, std::move(on_failure));
  if (auto done = communicator->connect(); !done) return tl::unexpected(done.error());
  return communicator;
}

}  // namespace hvd
