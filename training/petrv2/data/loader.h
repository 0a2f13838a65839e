// Brings the samples of one rank, micro-batch after micro-batch, in the order of the Sampler.
// Worker threads read ahead; what comes out does not depend on how many there are.
//
// Lifecycle: start(), next() until training ends, destructor. The destructor may come at any time:
// it waits for the samples being decoded and drops the rest. Thread: one calls the functions here;
// the workers take no signals. The record set is not owned and outlives the loader.
//
// Use, at each step: `step()` says which samples the coming step has and how many boxes each
// micro-batch of each rank has (for the normalisation of the losses, and the position for a
// checkpoint); then next() once for each micro-batch of this rank.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/status.h"
#include "training/petrv2/data/record_set.h"
#include "training/petrv2/data/sample.h"
#include "training/petrv2/data/sample_reader.h"
#include "training/petrv2/data/sampler.h"

namespace hvd::petrv2 {

struct LoaderOptions {
  SampleOptions sample;
  SamplerOptions sampler;  // num_samples is set by the loader
  std::uint32_t rank = 0;
  SamplerPosition start;  // of the first step
  std::optional<std::uint64_t>
      num_epochs;  // next() gives nothing from this epoch on; nullopt: never ends
  std::uint32_t num_threads = 2;
  std::uint32_t num_ahead = 4;  // micro-batches read ahead, finished ones included
};

// One step of all ranks.
struct StepPlan {
  SamplerPosition position;  // before the step
  SamplerPosition after;     // where the next one begins
  std::vector<std::uint64_t>
      samples;  // W b k indices in the data set, in sampler order, stand-ins in
  std::vector<std::uint32_t> num_boxes;  // W k: micro-batch m of rank r at r k + m
};

class Loader {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Loader>> start(const RecordSet& set,
                                                             const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  // The step that the coming next() belongs to; null after the last epoch.
  [[nodiscard]] std::shared_ptr<const StepPlan> step();

  // This rank's next micro-batch, b samples; empty after the last epoch. Waits. An error comes
  // where its sample would have come, and again at every later call.
  [[nodiscard]] Result<std::vector<Sample>> next();

  // "10 samples in steps of 4: 2 steps an epoch, 2 samples dropped each epoch".
  [[nodiscard]] std::string note() const { return sampler_.note(); }
  [[nodiscard]] const Sampler& sampler() const { return sampler_; }
  // Spent waiting in next(), all calls together.
  [[nodiscard]] std::chrono::nanoseconds data_wait() const { return data_wait_; }

 private:
  struct MicroBatch;
  struct Claim;
  Loader(const RecordSet& set, const LoaderOptions& options, Sampler sampler);
  [[nodiscard]] Result<void> start_threads();
  void work(SampleWorkspace& workspace);
  [[nodiscard]] Result<Sample> read(const Claim& claim, SampleWorkspace& workspace) const;
  // The following: mutex_ held.
  [[nodiscard]] std::optional<Claim> claim();
  void plan_ahead();
  [[nodiscard]] bool plan_step();

  const RecordSet& set_;
  const LoaderOptions options_;
  const SampleReader reader_;
  Sampler sampler_;
  std::chrono::nanoseconds data_wait_{0};
  std::optional<Error> failure_;  // once given, given for ever

  std::mutex mutex_;
  std::condition_variable work_added_;  // or stopping
  std::condition_variable sample_done_;
  SamplerPosition next_position_;  // of the first step not yet planned
  std::deque<std::shared_ptr<MicroBatch>> queue_;
  bool is_stopping_ = false;

  std::vector<SampleWorkspace> workspaces_;  // one a thread
  std::vector<std::jthread> threads_;
};

}  // namespace hvd::petrv2
