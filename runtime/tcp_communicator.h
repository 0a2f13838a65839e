// The communicator over TCP, for data in the CPU's memory. Made by tcp_connect().
//
//   all-reduce      small: recursive doubling, log2(n) exchanges; large: a ring (tcp_ring.h)
//   reduce-scatter, all-gather: half a ring      broadcast: a binomial tree, passed on as it comes,
//   after a round in which all ranks have compared root, count and type
//   barrier, finalize: recursive doubling of nothing
//
// Lifecycle and threads: communicator.h. No thread of its own: the caller's does all the work, so a
// rank that is busy elsewhere makes no progress.
#pragma once

#include <atomic>
#include <memory>

#include "hvdrun/communicator.h"
#include "runtime/tcp_mesh.h"
#include "runtime/tcp_operation.h"
#include "runtime/tcp_ring.h"

namespace hvd {

class TcpCommunicator final : public Communicator {
 public:
  explicit TcpCommunicator(std::unique_ptr<TcpMesh> mesh) : mesh_(std::move(mesh)) {}

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }

  Result<void> all_reduce(void* data, std::size_t count, DataType type, const Reduction& reduction,
                          const Call& call) override;
  Result<void> broadcast(void* data, std::size_t count, DataType type, int root,
                         const Call& call) override;
  Result<void> all_gather(const void* input, void* output, std::size_t count, DataType type,
                          const Call& call) override;
  Result<void> reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                              const Reduction& reduction, const Call& call) override;
  Result<void> barrier(const Call& call) override;
  void abort(std::string_view reason) override;
  Result<void> finalize(const Call& call) override;
  std::optional<CommunicatorFailure> failure() const override { return mesh_->failure(); }

 private:
  // Grows, never shrinks; the contents are lost.
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::byte* of_size(std::size_t wanted);
  };

  // Runs body(operation, ...) as the next operation unless there has been a failure.
  template <typename Body>
  Result<void> run(const OperationHeader& header, const Call& call, Body body);
  [[nodiscard]] Result<void> error(const OperationHeader& header) const;

  bool all_reduce_by_doubling(TcpOperation& operation, void* data, std::size_t count,
                              const ReductionPlan& plan);
  bool exchange(TcpOperation& operation, std::byte* own, std::size_t count,
                const ReductionPlan* plan);
  bool all_reduce_by_ring(TcpOperation& operation, std::byte* data, std::size_t count,
                          const ReductionPlan& plan);
  bool run_ring(TcpOperation& operation, std::uint16_t part, TcpRing& ring);

  const std::unique_ptr<TcpMesh> mesh_;
  std::uint64_t sequence_ = 0;
  bool is_finalized_ = false;
  std::atomic<bool> is_in_use_ = false;
  Buffer accumulators_;
  Buffer received_;
  RingScratch scratch_;
};

}  // namespace hvd
