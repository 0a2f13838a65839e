#include "training/petrv2/data/loader.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/signals_blocked.h"

namespace hvd::petrv2 {
namespace {

// Boxes of each micro-batch of each rank.
std::vector<std::uint32_t> count_boxes(const std::vector<SampleEntry>& entries,
                                       const std::vector<std::uint64_t>& samples,
                                       std::uint32_t batch_size) {
  std::vector<std::uint32_t> counts(samples.size() / batch_size, 0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    counts[i / batch_size] += entries[samples[i]].num_boxes;
  }
  return counts;
}

}  // namespace

// Samples of one micro-batch of this rank; the slots are filled in any order.
struct Loader::MicroBatch {
  std::shared_ptr<const StepPlan> plan;
  std::vector<std::uint64_t> drawn;  // as the sampler gave them
  std::vector<std::optional<Result<Sample>>> slots;
  std::size_t num_claimed = 0;
  std::size_t num_done = 0;
};

// One slot for one worker, which shares the micro-batch: the queue may end first.
struct Loader::Claim {
  std::shared_ptr<MicroBatch> batch;
  std::size_t slot = 0;
};

Result<std::unique_ptr<Loader>> Loader::start(const RecordSet& set, const LoaderOptions& options) {
  SamplerOptions sampling = options.sampler;
  sampling.num_samples = set.samples().size();
  auto sampler = Sampler::create(sampling);
  if (!sampler) return tl::unexpected(std::move(sampler).error());
  if (options.rank >= sampling.num_ranks) {
    return make_error("rank {} is none of {} ranks", options.rank, sampling.num_ranks);
  }
  if (options.num_threads == 0 || options.num_ahead == 0) {
    return make_error("a loader needs at least one thread and one micro-batch ahead");
  }
  std::unique_ptr<Loader> loader(new Loader(set, options, std::move(*sampler)));
  if (auto can_train = loader->reader_.check(); !can_train) {
    return tl::unexpected(std::move(can_train).error());
  }
  loader->plan_ahead();
  if (auto started = loader->start_threads(); !started) {
    return tl::unexpected(std::move(started).error());
  }
  return loader;
}

Loader::Loader(const RecordSet& set, const LoaderOptions& options, Sampler sampler)
    : set_(set),
      options_(options),
      reader_(set, options.sample),
      sampler_(std::move(sampler)),
      next_position_(sampler_.next_step(options.start)) {}

Result<void> Loader::start_threads() {
  for (std::uint32_t i = 0; i < options_.num_threads; ++i) {
    auto workspace = SampleWorkspace::create();
    if (!workspace) return tl::unexpected(std::move(workspace).error());
    workspaces_.push_back(std::move(*workspace));
  }
  const SignalsBlocked blocked;
  try {
    for (SampleWorkspace& workspace : workspaces_) {
      threads_.emplace_back([this, &workspace] { work(workspace); });
    }
  } catch (const std::system_error& error) {
    return make_error("start {} threads to load samples: {}; allow more or set fewer",
                      options_.num_threads, error.code().message());
  }
  return {};
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_added_.notify_all();
  threads_.clear();  // joins
}

// The one exception here is of the library: no memory.
Result<Sample> Loader::read(const Claim& claim, SampleWorkspace& workspace) const {
  const std::uint64_t index = claim.batch->drawn[claim.slot];
  try {
    return reader_.read(index, claim.batch->plan->position.epoch, workspace);
  } catch (const std::bad_alloc&) {
    return make_error("no memory for sample {}; use fewer --threads or a smaller batch",
                      set_.samples()[index].token);
  }
}

void Loader::work(SampleWorkspace& workspace) {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const std::optional<Claim> mine = claim();
    if (!mine) {
      work_added_.wait(lock);
      continue;
    }
    lock.unlock();
    Result<Sample> sample = read(*mine, workspace);
    lock.lock();
    mine->batch->slots[mine->slot] = std::move(sample);
    ++mine->batch->num_done;
    sample_done_.notify_one();
  }
}

std::optional<Loader::Claim> Loader::claim() {
  for (const auto& batch : queue_) {
    if (batch->num_claimed < batch->drawn.size()) return Claim{batch, batch->num_claimed++};
  }
  return std::nullopt;
}

void Loader::plan_ahead() {
  while (queue_.size() < options_.num_ahead && plan_step()) {
  }
}

// Queues this rank's micro-batches of one more step; false after the last epoch.
bool Loader::plan_step() {
  if (options_.num_epochs && next_position_.epoch >= *options_.num_epochs) return false;
  const SamplerOptions& shape = sampler_.options();
  const std::vector<std::uint64_t> drawn = sampler_.samples_of_step(next_position_);
  auto plan = std::make_shared<StepPlan>();
  plan->position = next_position_;
  plan->after = sampler_.after_step(next_position_);
  for (const std::uint64_t index : drawn) {
    plan->samples.push_back(reader_.stand_in(index, next_position_.epoch));
  }
  plan->num_boxes = count_boxes(set_.samples(), plan->samples, shape.batch_size);
  next_position_ = plan->after;
  const std::size_t size = shape.batch_size;
  const std::size_t first = std::size_t{options_.rank} * shape.num_micro_batches * size;
  for (std::size_t m = 0; m < shape.num_micro_batches; ++m) {
    auto batch = std::make_shared<MicroBatch>();
    batch->plan = plan;
    const auto begin = drawn.begin() + static_cast<std::ptrdiff_t>(first + m * size);
    batch->drawn.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
    batch->slots.resize(size);
    queue_.push_back(std::move(batch));
  }
  return true;
}

std::shared_ptr<const StepPlan> Loader::step() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() ? nullptr : queue_.front()->plan;
}

Result<std::vector<Sample>> Loader::next() {
  if (failure_) return tl::unexpected(*failure_);
  std::unique_lock lock(mutex_);
  if (queue_.empty()) return std::vector<Sample>{};
  const std::shared_ptr<MicroBatch> batch = queue_.front();
  const auto asked = std::chrono::steady_clock::now();
  sample_done_.wait(lock, [&] { return batch->num_done == batch->slots.size(); });
  data_wait_ += std::chrono::steady_clock::now() - asked;
  queue_.pop_front();
  plan_ahead();
  lock.unlock();
  work_added_.notify_all();
  std::vector<Sample> samples;
  for (auto& slot : batch->slots) {
    if (!*slot) {
      failure_ = std::move(*slot).error();
      return tl::unexpected(*failure_);
    }
    samples.push_back(std::move(**slot));
  }
  return samples;
}

}  // namespace hvd::petrv2
