// Collective operations among the ranks of one job. A backend (TCP between CPUs; NCCL between GPUs)
// implements this; what trains does not know which.
//
// Lifecycle: made connected to all ranks (hvdrun/runtime.h), used for any number of operations,
// finalized by every rank, destroyed. All ranks call the same operations in the same order with the
// same counts and types; a difference is an error that names the peer. Threads: one thread at a
// time, except abort() and failure(), which any thread may call at any time.
//
// Every operation returns within its time limit. If a peer is killed, stopped, unreachable or does
// not come, each rank's call ends with an error that names that peer (rank and host), at its limit
// at the latest; the contents of buffers that the call was to fill are then undefined. The first
// failure is final: every later call returns it again, and a new communicator is needed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd {

enum class DataType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kInt32,
  kInt64,
  kUint8,
};

// Bytes of one element.
[[nodiscard]] std::size_t size_of(DataType type);
// "float32": for sentences.
[[nodiscard]] std::string_view name_of(DataType type);

enum class ReduceOp : std::uint8_t { kSum, kAverage, kMin, kMax };
[[nodiscard]] std::string_view name_of(ReduceOp op);

// What becomes of the ranks' elements. The order of the sum depends on rank and position only, so
// equal inputs give equal bits, on every rank and in every run.
//   float16, bfloat16: accumulated in float32, rounded once (to nearest even).
//   kSum of integers wraps. kAverage of integers is the sum divided by the number of ranks, rounded
//   towards zero; the sum of int32 and uint8 is taken in a wider type and cannot wrap, that of
//   int64 can. kMin, kMax: a NaN of any rank gives NaN.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  // Each rank's own input is multiplied by it first, in the type of the accumulation. Integers: 1
  // only.
  double prescale = 1;
};

// How one call is made.
struct Call {
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  // Of a device backend: the cudaStream_t that the operation is put on; null: the communicator's
  // own. The CPU's ignore it.
  void* stream = nullptr;
};

// Why a communicator can no longer be used.
struct CommunicatorFailure {
  enum class Kind : std::uint8_t {
    kPeerLost,  // a connection ended: the peer's process or host is gone
    kDeadline,  // a peer did not do its part in time
    kMismatch,  // the ranks called different operations
    kAborted,   // somebody called abort()
    kInternal,  // a system call failed here
  };
  Kind kind = Kind::kInternal;
  int rank = -1;        // whose fault it is, as far as it can be known; -1: nobody's
  std::string message;  // one sentence that names rank and host
};

// Where the data of a communicator's operations lies. kCpu: a call returns when its operation is
// complete. kCuda: a call returns when its operation has been handed to the stream; wait() or an
// event on the stream says when it is complete, and its time limit runs all the same.
enum class DeviceKind : std::uint8_t { kCpu, kCuda };

class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  [[nodiscard]] virtual DeviceKind device_kind() const { return DeviceKind::kCpu; }
  // kCuda: its own stream, of the highest priority (cudaStream_t). kCpu: null.
  [[nodiscard]] virtual void* stream() const { return nullptr; }
  // Returns when everything that was handed over is complete.
  [[nodiscard]] virtual Result<void> wait(const Call& /*call*/) { return {}; }

  // data: `count` elements, aligned for their type; reduced in place on every rank.
  [[nodiscard]] virtual Result<void> all_reduce(void* data, std::size_t count, DataType type,
                                                const Reduction& reduction, const Call& call) = 0;

  // data: `count` elements of rank `root` become everybody's.
  [[nodiscard]] virtual Result<void> broadcast(void* data, std::size_t count, DataType type,
                                               int root, const Call& call) = 0;

  // input: `count` elements of this rank; output: size() * count, in the order of the ranks. They
  // may not overlap, except that input may be this rank's own place in output.
  [[nodiscard]] virtual Result<void> all_gather(const void* input, void* output, std::size_t count,
                                                DataType type, const Call& call) = 0;

  // input: size() * count elements; output: `count`, this rank's part of the reduced whole. They
  // may not overlap.
  [[nodiscard]] virtual Result<void> reduce_scatter(const void* input, void* output,
                                                    std::size_t count, DataType type,
                                                    const Reduction& reduction,
                                                    const Call& call) = 0;

  // Returns when all ranks have called it.
  [[nodiscard]] virtual Result<void> barrier(const Call& call) = 0;

  // Ends the operation in progress, here and on every other rank, and all later ones. `reason` is
  // the end of the sentence "rank 3 on node2 aborted: ...". Does not block.
  virtual void abort(std::string_view reason) = 0;

  // The regular end, called by every rank: returns when all have called it. No operation may
  // follow.
  [[nodiscard]] virtual Result<void> finalize(const Call& call) = 0;

  // Set once something failed.
  [[nodiscard]] virtual std::optional<CommunicatorFailure> failure() const = 0;
};

// The communicator of a job of one process: every operation is local.
[[nodiscard]] std::unique_ptr<Communicator> single_communicator();

}  // namespace hvd
