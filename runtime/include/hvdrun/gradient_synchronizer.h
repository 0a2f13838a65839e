// The mean of all gradients over the ranks, formed while backward still runs: hooks on the leaves'
// gradient accumulators fill flat buckets, and a communication thread reduces each full bucket,
// always in the same order on every rank.
//
//   auto made = GradientSynchronizer::create(parameters, data, control, options);
//   if (!made) return tl::unexpected(made.error());  // another model on rank 3, say
//   GradientSynchronizer& synchronizer = **made;
//   for (each step) {
//     synchronizer.set_riders(counts);                   // if options.num_riders > 0
//     for (std::size_t i = 0; i < micro_batches.size(); ++i) {
//       synchronizer.set_accumulating(i + 1 < micro_batches.size());
//       (loss(micro_batches[i]) / micro_batches.size()).backward();
//     }
//     if (auto done = synchronizer.finish(); !done) return done;
//     clip(synchronizer.flat_gradients());
//     optimiser.step(synchronizer.gradients());          // the parameters' order
//     log(synchronizer.riders(), synchronizer.num_missing());
//     synchronizer.reset();                              // before the next backward
//   }
//
// Lifecycle: create() is collective; destroyed before the communicators. Gradients are undefined
// before backward (create() and reset() see to it): autograd then hands its tensor over uncopied.
// In the first step nothing overlaps: the order in which gradients come is recorded, rank 0's
// becomes everybody's, and the buckets are made. That finish() is collective over `control`, too.
//
// Threads: the trainer's; hooks run on autograd's. `data` belongs to the communication thread from
// the first backward on; `control`, which may be `data` itself, is used by create() and by the
// first finish() only.
//
// Errors carry the worker's exit code (docs/ARCHITECTURE.md). After one the synchroniser is of no
// further use. A rank that fails must leave, so that the others do not wait for their time limit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hvdrun/communicator.h"
#include "hvdrun/sync_options.h"

namespace hvd {

struct NamedParameter {
  std::string name;  // unique; the same on all ranks
  at::Tensor tensor;
};

class GradientSynchronizer {
 public:
  // parameters: leaves that require a gradient, dense, floating-point; in any order, also another
  // one on each rank. data: kCuda for parameters on its GPU; kCpu for any, those of a GPU then go
  // through the host's memory. control: kCpu. Both not owned, outlive this.
  // A difference between the ranks is the same error on all (exit code 73): it names the parameter
  // or option, the ranks, and what each has.
  [[nodiscard]] static Result<std::unique_ptr<GradientSynchronizer>> create(
      std::vector<NamedParameter> parameters, Communicator& data, Communicator& control,
      const SyncOptions& options);
  // Waits for a collective in progress, to its time limit at most.
  ~GradientSynchronizer();
  GradientSynchronizer(const GradientSynchronizer&) = delete;
  GradientSynchronizer& operator=(const GradientSynchronizer&) = delete;

  // true: the next backward passes only add to the gradients of this rank. The last of a step runs
  // with false and communicates.
  void set_accumulating(bool is_accumulating);

  // options.num_riders numbers, whose mean over the ranks riders() gives after finish(). Before the
  // backward that communicates; zeros in a step without this call.
  void set_riders(std::span<const double> values);

  // After the last backward of a step. A parameter without a gradient counts as zeros. kCpu:
  // returns when all means are there. kCuda: returns when the current stream will wait for them;
  // the host does not.
  [[nodiscard]] Result<void> finish();

  // After finish(): a view for each parameter, in the order of create(), with the parameter's sizes
  // and strides; the parameters' grad() are the same. From the second step on the same tensors.
  [[nodiscard]] const std::vector<at::Tensor>& gradients() const;
  // The same memory as a flat tensor for each bucket, what is between gradients being zero: for
  // what treats all elements alike, such as clipping, at the cost of a few tensors instead of
  // hundreds.
  [[nodiscard]] const std::vector<at::Tensor>& flat_gradients() const;
  // (num_riders), on the device of the first bucket: float32, or float64 where its gradients are.
  // The caller's own: a later step does not change it.
  [[nodiscard]] at::Tensor riders() const;
  // Parameters that had no gradient on this rank in the last finished step.
  [[nodiscard]] std::int64_t num_missing() const;

  // All gradients undefined, ready for the next step.
  void reset();

  // After the first finish(): the parameters' names by bucket, in the order of communication.
  [[nodiscard]] std::vector<std::vector<std::string>> buckets() const;
  // What this rank has given to all-reduces so far.
  [[nodiscard]] std::uint64_t bytes_on_wire() const;

 private:
  class Core;
  explicit GradientSynchronizer(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

// The tensors of rank `root` become everybody's, in place. Names, types and shapes are checked as
// by create(); strides may differ. kCuda: tensors on any device go through that of the
// communicator.
[[nodiscard]] Result<void> broadcast_parameters(std::vector<NamedParameter> tensors,
                                                Communicator& communicator, int root,
                                                const Call& call);
// The same for an optimiser's state, which must exist on all ranks: moments, and counters as
// tensors.
[[nodiscard]] Result<void> broadcast_optimizer_state(std::vector<NamedParameter> tensors,
                                                     Communicator& communicator, int root,
                                                     const Call& call);

}  // namespace hvd
