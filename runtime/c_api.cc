#include "hvdrun/c_api.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
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

// The program's mistake: what it asked for was not begun. name: of the function.
int refuse(const char* name, const std::string& what) {
  last_error() = std::string(name) + ": " + what;
  return static_cast<int>(hvd::ExitCode::kUsage);
}
constexpr const char* kNoJob = "the job is NULL, or finalized already";

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

// The job of this process, while there is one: a handle that is not of it is refused, not used.
std::atomic<hvdrun_runtime*> current_job = nullptr;

hvdrun_runtime* job_of(const hvdrun_runtime* handle) {
  hvdrun_runtime* const job = current_job.load();
  return handle != nullptr && handle == job ? job : nullptr;
}
hvd::Communicator* communicator_of(const hvdrun_communicator* handle) {
  hvdrun_runtime* const job = current_job.load();
  if (handle == nullptr || job == nullptr) return nullptr;
  const bool is_ours = handle == &job->cpu || handle == &job->cuda;
  return is_ours ? handle->communicator : nullptr;
}

// What a program hands over with an operation. count: elements of one rank.
struct Buffers {
  const void* input;
  const void* output;
  std::size_t count;
  hvdrun_type type;
};

// nullopt: they can be as they are said to be.
std::optional<std::string> objection(const Buffers& given, std::size_t num_parts) {
  if (!is_type(given.type)) return "no such type";
  if (given.count > 0 && (given.input == nullptr || given.output == nullptr)) {
    return fmt::format("{} elements, but the pointer to the data is NULL", given.count);
  }
  const std::size_t most = PTRDIFF_MAX / hvd::size_of(type_of(given.type)) / num_parts;
  if (given.count <= most) return std::nullopt;
  return fmt::format("{} elements are more than memory can hold", given.count);
}

std::optional<std::string> reduction_objection(hvdrun_type type, hvdrun_op op, double prescale) {
  if (!is_type(type) || !is_op(op)) return "no such type or operation";
  const bool is_integer = type == HVDRUN_INT32 || type == HVDRUN_INT64 || type == HVDRUN_UINT8;
  if (!is_integer || prescale == 1) return std::nullopt;
  return fmt::format("a prescale of {} is not defined for integers: give 1", prescale);
}

// call(): int. No exception leaves; name: of the function.
template <typename Function>
int guarded(const char* name, Function call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    last_error() = std::string(name) + ": " + error.what();
    return kInternalCode;
  }
}

// operation: Result<void>(hvd::Communicator&). What fails without a failure of the communicator is
// the program's: nothing was begun.
template <typename Operation>
int run(const char* name, hvdrun_communicator* handle, Operation operation) noexcept {
  return guarded(name, [&] {
    hvd::Communicator* const communicator = communicator_of(handle);
    if (communicator == nullptr) return refuse(name, "the communicator is NULL, or of no job");
    const hvd::Result<void> done = operation(*communicator);
    if (done) return 0;
    if (!communicator->failure()) return refuse(name, done.error().message);
    return fail(hvd::collective_error(*communicator, done.error()).value());
  });
}

// The same with data.
template <typename Operation>
int run_on(const char* name, hvdrun_communicator* handle, const Buffers& data, bool has_parts,
           Operation operation) noexcept {
  return run(name, handle, [&](hvd::Communicator& peers) -> hvd::Result<void> {
    const auto num_parts = has_parts ? static_cast<std::size_t>(peers.size()) : 1;
    if (const auto wrong = objection(data, num_parts)) return hvd::make_error("{}", *wrong);
    return operation(peers);
  });
}

// value(): of the job's place.
template <typename Value>
int number_of(const hvdrun_runtime* handle, Value value) {
  const hvdrun_runtime* const job = job_of(handle);
  if (job != nullptr) return value(job->runtime->place());
  refuse("hvdrun", kNoJob);
  return -1;
}

int start(const hvdrun_options* options, hvdrun_runtime** job) {
  auto runtime = hvd::Runtime::init(options_of(options));
  if (!runtime) return fail(runtime.error());
  auto made = std::make_unique<hvdrun_runtime>();
  made->cpu.communicator = &(*runtime)->cpu();
  made->runtime = std::move(*runtime);
  current_job = made.get();
  *job = made.release();
  return 0;
}

int connect_gpus(hvdrun_runtime* job, hvdrun_communicator** communicator) {
  auto connected = job->runtime->cuda();
  if (!connected) return fail(connected.error());
  job->cuda.communicator = *connected;
  *communicator = &job->cuda;
  return 0;
}

int finalize(hvdrun_runtime* job, std::int64_t timeout_ms) {
  const auto done = job->runtime->finalize(timeout_ms > 0 ? clamped(timeout_ms) : kFinalizeTimeout);
  if (!done) return fail(done.error());
  current_job = nullptr;
  delete job;
  return 0;
}

}  // namespace

extern "C" {

const char* hvdrun_last_error(void) { return last_error().c_str(); }

int hvdrun_init(const hvdrun_options* options, hvdrun_runtime** job) {
  if (job == nullptr) return refuse("hvdrun_init", "the place for the job is NULL");
  return guarded("hvdrun_init", [&] { return start(options, job); });
}

int hvdrun_rank(const hvdrun_runtime* job) {
  return number_of(job, [](const hvd::Place& place) { return place.rank; });
}
int hvdrun_size(const hvdrun_runtime* job) {
  return number_of(job, [](const hvd::Place& place) { return place.size; });
}
int hvdrun_local_rank(const hvdrun_runtime* job) {
  return number_of(job, [](const hvd::Place& place) { return place.local_rank; });
}
int hvdrun_local_size(const hvdrun_runtime* job) {
  return number_of(job, [](const hvd::Place& place) { return place.local_size; });
}
int hvdrun_cross_rank(const hvdrun_runtime* job) {
  return number_of(job, [](const hvd::Place& place) { return place.cross_rank; });
}
int hvdrun_cross_size(const hvdrun_runtime* job) {
  return number_of(job, [](const hvd::Place& place) { return place.cross_size; });
}
const char* hvdrun_launcher(const hvdrun_runtime* job) {
  return job_of(job) == nullptr ? "" : job->runtime->place().launcher.c_str();
}
const char* hvdrun_host(const hvdrun_runtime* job) {
  return job_of(job) == nullptr ? "" : job->runtime->place().host.c_str();
}

hvdrun_communicator* hvdrun_cpu(hvdrun_runtime* job) {
  if (job_of(job) != nullptr) return &job->cpu;
  refuse("hvdrun_cpu", kNoJob);
  return nullptr;
}

int hvdrun_cuda(hvdrun_runtime* job, hvdrun_communicator** communicator) {
  if (communicator == nullptr) {
    return refuse("hvdrun_cuda", "the place for the communicator is NULL");
  }
  if (job_of(job) == nullptr) return refuse("hvdrun_cuda", kNoJob);
  return guarded("hvdrun_cuda", [&] { return connect_gpus(job, communicator); });
}

int hvdrun_all_reduce(hvdrun_communicator* communicator, void* data, size_t count, hvdrun_type type,
                      hvdrun_op op, double prescale, const hvdrun_call* call) {
  constexpr const char* kName = "hvdrun_all_reduce";
  if (const auto wrong = reduction_objection(type, op, prescale)) return refuse(kName, *wrong);
  return run_on(kName, communicator, {data, data, count, type}, false,
                [&](hvd::Communicator& peers) {
                  return peers.all_reduce(data, count, type_of(type), reduction_of(op, prescale),
                                          call_of(call));
                });
}

int hvdrun_broadcast(hvdrun_communicator* communicator, void* data, size_t count, hvdrun_type type,
                     int root, const hvdrun_call* call) {
  return run_on("hvdrun_broadcast", communicator, {data, data, count, type}, false,
                [&](hvd::Communicator& peers) -> hvd::Result<void> {
                  if (root < 0 || root >= peers.size()) {
                    return hvd::make_error("there is no rank {} among {}", root, peers.size());
                  }
                  return peers.broadcast(data, count, type_of(type), root, call_of(call));
                });
}

int hvdrun_all_gather(hvdrun_communicator* communicator, const void* input, void* output,
                      size_t count, hvdrun_type type, const hvdrun_call* call) {
  return run_on("hvdrun_all_gather", communicator, {input, output, count, type}, true,
                [&](hvd::Communicator& peers) {
                  return peers.all_gather(input, output, count, type_of(type), call_of(call));
                });
}

int hvdrun_reduce_scatter(hvdrun_communicator* communicator, const void* input, void* output,
                          size_t count, hvdrun_type type, hvdrun_op op, double prescale,
                          const hvdrun_call* call) {
  constexpr const char* kName = "hvdrun_reduce_scatter";
  if (const auto wrong = reduction_objection(type, op, prescale)) return refuse(kName, *wrong);
  return run_on(kName, communicator, {input, output, count, type}, true,
                [&](hvd::Communicator& peers) {
                  return peers.reduce_scatter(input, output, count, type_of(type),
                                              reduction_of(op, prescale), call_of(call));
                });
}

int hvdrun_barrier(hvdrun_communicator* communicator, const hvdrun_call* call) {
  return run("hvdrun_barrier", communicator,
             [&](hvd::Communicator& peers) { return peers.barrier(call_of(call)); });
}

int hvdrun_wait(hvdrun_communicator* communicator, const hvdrun_call* call) {
  return run("hvdrun_wait", communicator,
             [&](hvd::Communicator& peers) { return peers.wait(call_of(call)); });
}

void hvdrun_abort(hvdrun_communicator* communicator, const char* reason) {
  hvd::Communicator* const peers = communicator_of(communicator);
  if (peers != nullptr) peers->abort(reason == nullptr ? "no reason was given" : reason);
}

void hvdrun_leave(hvdrun_runtime* job, int code, const char* reason) {
  hvd::Error cause;
  cause.message = reason == nullptr ? "no reason was given" : reason;
  const bool is_code = code > 0 && code < 256;
  cause.code = static_cast<hvd::ExitCode>(is_code ? code : kInternalCode);
  if (job_of(job) != nullptr) job->runtime->leave(std::move(cause));
  hvd::log(hvd::LogLevel::kError, "hvdrun_leave, without a job: {}", cause.message);
  _exit(static_cast<int>(cause.code));
}

int hvdrun_finalize(hvdrun_runtime* job, int64_t timeout_ms) {
  if (job_of(job) == nullptr) return refuse("hvdrun_finalize", kNoJob);
  return guarded("hvdrun_finalize", [&] { return finalize(job, timeout_ms); });
}

}  // extern "C"
