// A communicator between CPUs that tells what it does: each operation stands in the flight recorder
// and on the activity board while it goes on, so that a dump and the launcher's stall check know of
// it, whoever calls it.
//
// Lifecycle and threads: communicator.h. The recorder and the board are not owned and outlive it.
#pragma once

#include <memory>
#include <string_view>

#include "hvdrun/communicator.h"
#include "runtime/activity_board.h"
#include "runtime/flight_recorder.h"

namespace hvd {

class RecordedCommunicator final : public Communicator {
 public:
  RecordedCommunicator(std::unique_ptr<Communicator> inner, FlightRecorder& recorder,
                       ActivityBoard& board)
      : inner_(std::move(inner)), recorder_(recorder), board_(board) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  DeviceKind device_kind() const override { return inner_->device_kind(); }
  void* stream() const override { return inner_->stream(); }
  Result<void> wait(const Call& call) override { return inner_->wait(call); }

  Result<void> all_reduce(void* data, std::size_t count, DataType type, const Reduction& reduction,
                          const Call& call) override;
  Result<void> broadcast(void* data, std::size_t count, DataType type, int root,
                         const Call& call) override;
  Result<void> all_gather(const void* input, void* output, std::size_t count, DataType type,
                          const Call& call) override;
  Result<void> reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                              const Reduction& reduction, const Call& call) override;
  Result<void> barrier(const Call& call) override;
  Result<void> finalize(const Call& call) override;
  void abort(std::string_view reason) override { inner_->abort(reason); }
  std::optional<CommunicatorFailure> failure() const override { return inner_->failure(); }

 private:
  // An operation that has failed stays in flight for whoever reads the dump.
  template <typename Operation>
  Result<void> record(const char* name, std::uint64_t num_bytes, const Call& call,
                      Operation operation);

  const std::unique_ptr<Communicator> inner_;
  FlightRecorder& recorder_;
  ActivityBoard& board_;
};

}  // namespace hvd
