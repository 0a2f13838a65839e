// Everything that a training goes on from: weights, moments, loss scale as named tensors, and where
// it stands. There is no generator state: every draw is keyed by seed, epoch and position. Thread:
// the trainer's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/communicator.h"
#include "training/formats/checkpoint_store.h"
#include "training/petrv2/data/sampler.h"
#include "training/petrv2/model/petrv2.h"
#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"

namespace hvd::petrv2 {

// Taken between two steps.
struct TrainPosition {
  std::uint64_t step = 0;          // steps done, skipped ones included
  SamplerPosition sampler;         // of the next step
  std::uint64_t samples_seen = 0;  // since the start of the training, over all ranks
  std::uint64_t num_skipped = 0;
  std::uint64_t num_skipped_in_a_row = 0;
  std::uint64_t seed = 0;

  bool operator==(const TrainPosition&) const = default;
};

// As the metadata of a checkpoint, and back; an error names the key that is missing or no number.
inline constexpr const char* kDataKey = "data";
[[nodiscard]] TensorMetadata to_metadata(const TrainPosition& position, const std::string& config,
                                         const std::string& data);
[[nodiscard]] Result<TrainPosition> from_metadata(const TensorMetadata& metadata);

class TrainState {
 public:
  TrainState(const Petrv2& model, AdamW& optimiser, LossScale& loss_scale);

  [[nodiscard]] Result<SavedCheckpoint> save(CheckpointStore& store, const TrainPosition& position,
                                             const std::string& config,
                                             const std::string& data) const;

  // Every tensor from the file; a missing one, another shape or type is an error and then the
  // tensors are of no use.
  [[nodiscard]] Result<void> load(const SafetensorsFile& file);

  // Rank 0's become everybody's.
  [[nodiscard]] Result<void> broadcast(Communicator& communicator, const Call& call);

  // Over the bytes of all weights and statistics, in their order.
  [[nodiscard]] std::uint32_t weights_checksum() const;

 private:
  struct Named {
    std::string name;
    at::Tensor tensor;
  };
  std::vector<Named> tensors_;
  std::size_t num_weights_ = 0;  // the first ones
};

}  // namespace hvd::petrv2
