// Puts the samples of the next step into tensors while the device works on this one: what the
// trainer takes is ready to be copied to a GPU.
//
// Lifecycle: made with a loader that nobody else calls from then on; next() until training ends;
// the destructor waits for the sample being decoded. Threads: next() and wait() are the trainer's;
// a thread of its own, which takes no signals, prepares.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/status.h"
#include "training/petrv2/data/loader.h"
#include "training/petrv2/trainer/batch_maker.h"

namespace hvd::petrv2 {

// One step of this rank.
struct StepData {
  std::shared_ptr<const StepPlan> plan;  // null: the last epoch is through
  std::vector<HostBatch> micro_batches;
};

class StepFeed {
 public:
  // The loader is not owned and outlives this. device: that the batches are for.
  StepFeed(Loader& loader, std::uint32_t num_micro_batches, at::Device device);
  ~StepFeed();
  StepFeed(const StepFeed&) = delete;
  StepFeed& operator=(const StepFeed&) = delete;

  // Waits until the step is there. An error comes again at every later call.
  [[nodiscard]] Result<StepData> next();
  // Spent waiting in next(), all calls together.
  [[nodiscard]] std::chrono::nanoseconds data_wait() const { return data_wait_; }

 private:
  void prepare();
  [[nodiscard]] Result<StepData> read_step();

  Loader& loader_;
  const std::uint32_t num_micro_batches_;
  const at::Device device_;
  std::chrono::nanoseconds data_wait_{0};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<Result<StepData>> ready_;  // the next step
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace hvd::petrv2
