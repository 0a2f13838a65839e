#include "hvdrun/c_api.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "hvdrun/runtime.h"
#include "runtime/worker_exit.h"

// A handle is what it stands for; C sees no more of it than its address.
struct hvdrun_communicator {
  hvd::Communicator* communicator;  // not owned: the runtime's
};
struct hvdrun_runtime {
  std::unique_ptr<hvd::Runtime> runtime;
  hvdrun_communicator cpu{nullptr};
  hvdrun_communicator cuda{nullptr};
};

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFinalizeTimeout{30'000};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

int fail(const hvd::Error& error) {
  last_error() = error.message;
  return static_cast<int>(error.code);
}

int refuse(const char* what) {
  last_error() = what;
  return static_cast<int>(hvd::ExitCode::kUsage);
}

// Fields that the program's header did not have yet are as if not given.
bool has_field(std::size_t struct_size, std::size_t end_of_field) {
  return struct_size >= end_of_field;
}
#define HVDRUN_HAS(object, field)  \
  has_field((object)->struct_size, \
            offsetof(std::remove_cvref_t<decltype(*(object))>, field) + sizeof((object)->field))

constexpr int kInternalCode = static_cast<int>(hvd::WorkerExit::kInternal);

// Deadlines are sums with the time of now, which must not overflow.
milliseconds clamped(std::int64_t timeout_ms) {
  return std::min<milliseconds>(milliseconds(timeout_ms), std::chrono::hours(24 * 365));
}

hvd::InitOptions options_of(const hvdrun_options* given) {
  hvd::InitOptions options;
  if (given == nullptr) return options;
  if (HVDRUN_HAS(given, start_timeout_ms) && given->start_timeout_ms > 0) {
    options.start_timeout = clamped(given->start_timeout_ms);
  }
  if (HVDRUN_HAS(given, plan) && given->plan != nullptr) options.plan = given->plan;
  if (HVDRUN_HAS(given, device)) options.device = given->device;
  return options;
}

hvd::Call call_of(const hvdrun_call* given) {
  hvd::Call call;
  if (given == nullptr) return call;
  if (HVDRUN_HAS(given, timeout_ms) && given->timeout_ms > 0) {
    call.timeout = clamped(given->timeout_ms);
  }
  if (HVDRUN_HAS(given, stream)) call.stream = given->stream;
  return call;
}
#undef HVDRUN_HAS

// The values of both enumerations are the same by their order.
static_assert(static_cast<int>(hvd::DataType::kFloat64) == HVDRUN_FLOAT64 &&
              static_cast<int>(hvd::DataType::kUint8) == HVDRUN_UINT8 &&
              static_cast<int>(hvd::ReduceOp::kSum) == HVDRUN_SUM &&
              static_cast<int>(hvd::ReduceOp::kMax) == HVDRUN_MAX);
bool is_type(hvdrun_type type) { return type >= HVDRUN_FLOAT64 && type <= HVDRUN_UINT8; }
bool is_op(hvdrun_op op) { return op >= HVDRUN_SUM && op <= HVDRUN_MAX; }
hvd::DataType type_of(hvdrun_type type) { return static_cast<hvd::DataType>(type); }
hvd::Reduction reduction_of(hvdrun_op op, double prescale) {
  return {static_cast<hvd::ReduceOp>(op), prescale};
}

// operation: Result<void>(hvd::Communicator&). No exception leaves.
template <typename Operation>
int run(hvdrun_communicator* handle, Operation operation) noexcept {
  if (handle == nullptr) return refuse("the communicator is NULL");
  try {
    hvd::Communicator& communicator = *handle->communicator;
    const hvd::Result<void> done = operation(communicator);
    if (done) return 0;
    return fail(hvd::collective_error(communicator, done.error()).value());
  } catch (const std::exception& error) {
    last_error() = error.what();
    return static_cast<int>(hvd::WorkerExit::kInternal);
  }
}

}  // namespace

extern "C" {

const char* hvdrun_last_error(void) { return last_error().c_str(); }

int hvdrun_init(const hvdrun_options* options, hvdrun_runtime** job) {
  if (job == nullptr) return refuse("hvdrun_init: the place for the job is NULL");
  auto runtime = hvd::Runtime::init(options_of(options));
  if (!runtime) return fail(runtime.error());
  auto made = std::make_unique<hvdrun_runtime>();
  made->cpu.communicator = &(*runtime)->cpu();
  made->runtime = std::move(*runtime);
  *job = made.release();
  return 0;
}

int hvdrun_rank(const hvdrun_runtime* job) { return job->runtime->place().rank; }
int hvdrun_size(const hvdrun_runtime* job) { return job->runtime->place().size; }
int hvdrun_local_rank(const hvdrun_runtime* job) { return job->runtime->place().local_rank; }
int hvdrun_local_size(const hvdrun_runtime* job) { return job->runtime->place().local_size; }
int hvdrun_cross_rank(const hvdrun_runtime* job) { return job->runtime->place().cross_rank; }
int hvdrun_cross_size(const hvdrun_runtime* job) { return job->runtime->place().cross_size; }
const char* hvdrun_launcher(const hvdrun_runtime* job) {
  return job->runtime->place().launcher.c_str();
}
const char* hvdrun_host(const hvdrun_runtime* job) { return job->runtime->place().host.c_str(); }

hvdrun_communicator* hvdrun_cpu(hvdrun_runtime* job) { return &job->cpu; }

int hvdrun_cuda(hvdrun_runtime* job, hvdrun_communicator** communicator) {
  if (job == nullptr || communicator == nullptr) return refuse("hvdrun_cuda: an argument is NULL");
  auto connected = job->runtime->cuda();
  if (!connected) return fail(connected.error());
  job->cuda.communicator = *connected;
  *communicator = &job->cuda;
  return 0;
}

int hvdrun_all_reduce(hvdrun_communicator* communicator, void* data, size_t count, hvdrun_type type,
                      hvdrun_op op, double prescale, const hvdrun_call* call) {
  if (!is_type(type) || !is_op(op)) return refuse("hvdrun_all_reduce: no such type or operation");
  return run(communicator, [&](hvd::Communicator& peers) {
    return peers.all_reduce(data, count, type_of(type), reduction_of(op, prescale), call_of(call));
  });
}

int hvdrun_broadcast(hvdrun_communicator* communicator, void* data, size_t count, hvdrun_type type,
                     int root, const hvdrun_call* call) {
  if (!is_type(type)) return refuse("hvdrun_broadcast: no such type");
  return run(communicator, [&](hvd::Communicator& peers) {
    return peers.broadcast(data, count, type_of(type), root, call_of(call));
  });
}

int hvdrun_all_gather(hvdrun_communicator* communicator, const void* input, void* output,
                      size_t count, hvdrun_type type, const hvdrun_call* call) {
  if (!is_type(type)) return refuse("hvdrun_all_gather: no such type");
  return run(communicator, [&](hvd::Communicator& peers) {
    return peers.all_gather(input, output, count, type_of(type), call_of(call));
  });
}

int hvdrun_reduce_scatter(hvdrun_communicator* communicator, const void* input, void* output,
                          size_t count, hvdrun_type type, hvdrun_op op, double prescale,
                          const hvdrun_call* call) {
  if (!is_type(type) || !is_op(op)) {
    return refuse("hvdrun_reduce_scatter: no such type or operation");
  }
  return run(communicator, [&](hvd::Communicator& peers) {
    return peers.reduce_scatter(input, output, count, type_of(type), reduction_of(op, prescale),
                                call_of(call));
  });
}

int hvdrun_barrier(hvdrun_communicator* communicator, const hvdrun_call* call) {
  return run(communicator, [&](hvd::Communicator& peers) { return peers.barrier(call_of(call)); });
}

int hvdrun_wait(hvdrun_communicator* communicator, const hvdrun_call* call) {
  return run(communicator, [&](hvd::Communicator& peers) { return peers.wait(call_of(call)); });
}

void hvdrun_abort(hvdrun_communicator* communicator, const char* reason) {
  communicator->communicator->abort(reason == nullptr ? "no reason was given" : reason);
}

void hvdrun_leave(hvdrun_runtime* job, int code, const char* reason) {
  hvd::Error cause;
  cause.message = reason == nullptr ? "no reason was given" : reason;
  const bool is_code = code > 0 && code < 256;
  cause.code = static_cast<hvd::ExitCode>(is_code ? code : kInternalCode);
  job->runtime->leave(std::move(cause));
}

int hvdrun_finalize(hvdrun_runtime* job, int64_t timeout_ms) {
  if (job == nullptr) return refuse("hvdrun_finalize: the job is NULL");
  const auto done = job->runtime->finalize(timeout_ms > 0 ? clamped(timeout_ms) : kFinalizeTimeout);
  if (!done) return fail(done.error());
  delete job;
  return 0;
}

}  // extern "C"
