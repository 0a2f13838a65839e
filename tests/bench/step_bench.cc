// What a training step takes, and what the gradient synchroniser adds to it. Inputs are fixed and
// made up, so that only the step is measured: copy of the images, forward, backward, clipping,
// AdamW. Activation checkpointing is off.
//
// step_bench --config NAME [--batch N] [--steps N] [--rounds N] [--device cuda|cpu]
//            [--precision fp32|bf16] [--compression none|fp16|bf16] [--models N] [--block N]
//            [--trace FILE]
//
// In each round up to three models take --steps steps each, --block (10) at a time in turn: one
// with hooks and buckets, one without ("plain": gradients as autograd left them), a plain one as a
// control. A round's figure is the median of its blocks, its ratio that of the blocks' ratios: what
// disturbs the host for seconds is in both. Under a launcher the first one's gradients become the
// means over the ranks.
// --trace: a Chrome trace of three steps of the first model, by libtorch's profiler; of the others
// in FILE.1 and FILE.2.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "hvdrun/gradient_synchronizer.h"
#include "hvdrun/runtime.h"
#include "training/petrv2/config.h"
#include "training/petrv2/model/petrv2.h"
#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"
#include "training/petrv2/trainer/device.h"
#include "training/petrv2/trainer/step_runner.h"
#include "training/petrv2/verify/scene.h"

namespace {

using namespace hvd;          // NOLINT: a program of one file
using namespace hvd::petrv2;  // NOLINT

constexpr int kWarmUp = 10;
constexpr std::chrono::milliseconds kBarrierLimit{60'000};
constexpr std::int64_t kNumBoxes = 30;
constexpr double kRate = 1e-5;

struct Settings {
  std::string config = "petrv2_r50_p4_256x704";
  std::string device = "auto";
  std::string precision = "bf16";
  std::string compression = "none";
  std::string trace;
  std::int64_t batch = 1;
  int steps = 100;
  int rounds = 5;
  int block = 10;
  int models = 3;
};

std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  const auto take = [&](const char* name, auto& value) {
    const auto found = values.extract(name);
    if (found.empty()) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      value = found.mapped();
    } else {
      value = std::max(1, std::atoi(found.mapped().c_str()));
    }
  };
  take("--config", settings.config);
  take("--device", settings.device);
  take("--precision", settings.precision);
  take("--compression", settings.compression);
  take("--trace", settings.trace);
  take("--batch", settings.batch);
  take("--steps", settings.steps);
  take("--rounds", settings.rounds);
  take("--block", settings.block);
  take("--models", settings.models);
  if (argc % 2 == 0 || !values.empty()) return std::nullopt;
  return settings;
}

struct Inputs {
  at::Tensor images;  // (B, 12, H, W, 3) uint8, page-locked for a GPU
  Batch batch;
  Normalisers normalisers;
};

Inputs make_inputs(const ModelConfig& config, std::int64_t size, bool is_on_gpu) {
  Inputs inputs;
  const std::vector<std::int64_t> shape = {size, kNumViews, config.image.height, config.image.width,
                                           3};
  inputs.images = at::randint(0, 256, shape, at::kByte);
  if (is_on_gpu) inputs.images = inputs.images.pin_memory();
  inputs.batch.lidar2img = scene_cameras(size, config.image.height, config.image.width);
  inputs.batch.time_delta = at::full({size}, 0.5, at::kDouble);
  const at::Tensor low = at::tensor({-45., -45., -3., .5, .5, 1., -3., -5., -5.}, at::kDouble);
  const at::Tensor high = at::tensor({45., 45., 1., 3., 8., 3., 3., 5., 5.}, at::kDouble);
  for (std::int64_t i = 0; i < size; ++i) {
    inputs.batch.targets.push_back({low + (high - low) * at::rand({kNumBoxes, 9}, at::kDouble),
                                    at::randint(0, 10, {kNumBoxes}, at::kLong)});
  }
  const std::vector<std::int64_t> num_boxes(static_cast<std::size_t>(size), kNumBoxes);
  inputs.normalisers = count_positives(config, num_boxes);
  return inputs;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class TrainedModel {
 public:
  TrainedModel(const Settings& settings, const Config& config, at::Device device)
      : settings_(settings),
        config_(config),
        model_(config.model, device, at::kFloat, 1),
        parameters_(trainable_parameters(model_)) {
    if (device.is_cuda()) model_.use_channels_last();
    inputs_ = make_inputs(config.model, settings.batch, device.is_cuda());
    std::vector<at::Tensor> tensors;
    for (const auto& parameter : parameters_) tensors.push_back(parameter.tensor);
    optimiser_ =
        std::make_unique<AdamW>(tensors, std::vector<double>(tensors.size(), 1.), AdamWOptions{});
  }

  // Mean seconds of a step; begins and ends with an idle device. synchronizer: null: without.
  Result<double> run_block(GradientSynchronizer* synchronizer, int num_steps) {
    const double cpu_begin = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < num_steps; ++i) {
      if (auto done = step(synchronizer); !done) return tl::unexpected(done.error());
    }
    last_.item();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    num_steps_ += num_steps;
    cpu_seconds_ += cpu_seconds() - cpu_begin;
    return passed.count() / num_steps;
  }

  [[nodiscard]] int num_steps() const { return num_steps_; }
  // Of all threads of the process, a step.
  [[nodiscard]] double mean_cpu_seconds() const { return cpu_seconds_ / num_steps_; }
  [[nodiscard]] const std::vector<NamedParameter>& parameters() const { return parameters_; }

 private:
  Result<void> step(GradientSynchronizer* synchronizer) {
    inputs_.batch.image = model_.normalise(inputs_.images);
    ForwardOptions options;
    options.precision = settings_.precision == "bf16" ? Precision::kBf16 : Precision::kFull;
    const TrainResult result = model_.forward_train(inputs_.batch, inputs_.normalisers, options);
    result.total.backward();
    if (synchronizer != nullptr) {
      if (auto done = synchronizer->finish(); !done) return done;
      update(synchronizer->gradients(), synchronizer->flat_gradients());
      synchronizer->reset();
    } else {
      const std::vector<at::Tensor> gradients = own_gradients();
      update(gradients, gradients);
      for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
    }
    return {};
  }

  // Autograd keeps the parameter's layout, but for the strides of dimensions of one element.
  std::vector<at::Tensor> own_gradients() {
    std::vector<at::Tensor> gradients;
    for (const auto& [name, parameter] : parameters_) {
      const at::Tensor& gradient = parameter.grad();
      gradients.push_back(!gradient.defined() ? at::zeros_like(parameter)
                          : gradient.strides() == parameter.strides()
                              ? gradient
                              : gradient.as_strided(parameter.sizes(), parameter.strides()));
    }
    return gradients;
  }

  // to_clip: the same memory, in whatever pieces.
  void update(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& to_clip) {
    const ClipResult clipped = clip(to_clip, config_.train.clip_norm);
    optimiser_->step(gradients, kRate, clipped.found_inf);
    last_ = clipped.norm;
  }

  const Settings settings_;
  int num_steps_ = 0;
  double cpu_seconds_ = 0;
  const Config& config_;
  Petrv2 model_;
  std::vector<NamedParameter> parameters_;
  Inputs inputs_;
  std::unique_ptr<AdamW> optimiser_;
  at::Tensor last_;  // of the device's work, the norm of the gradients
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

SyncOptions sync_options(const Settings& settings) {
  SyncOptions options;
  options.num_riders = 40;
  if (settings.compression == "fp16") options.compression = Compression::kFloat16;
  if (settings.compression == "bf16") options.compression = Compression::kBfloat16;
  return options;
}

// A model that steps with the synchroniser, or without.
struct Lane {
  Lane(const char* lane_name, const Settings& settings, const Config& config, at::Device device)
      : name(lane_name), model(std::make_unique<TrainedModel>(settings, config, device)) {}
  const char* name;
  std::unique_ptr<TrainedModel> model;
  std::unique_ptr<GradientSynchronizer> synchronizer;  // null: without
  std::vector<std::vector<double>> rounds;             // mean seconds of a step, of the blocks
};

// The ranks begin each block together: else the lag of one would count in the next block.
Result<void> run_rounds(const Settings& settings, std::vector<Lane>& lanes, Communicator& ranks) {
  for (auto& lane : lanes) {
    const auto warm = lane.model->run_block(lane.synchronizer.get(), kWarmUp);
    if (!warm) return tl::unexpected(warm.error());
  }
  const int num_blocks = std::max(1, settings.steps / settings.block);
  for (int round = 0; round < settings.rounds; ++round) {
    for (Lane& lane : lanes) lane.rounds.emplace_back();
    for (int block = 0; block < num_blocks; ++block) {
      for (std::size_t turn = 0; turn < lanes.size(); ++turn) {
        const std::size_t i = (turn + static_cast<std::size_t>(block)) % lanes.size();
        if (auto met = ranks.barrier({kBarrierLimit, nullptr}); !met) return met;
        const auto seconds = lanes[i].model->run_block(lanes[i].synchronizer.get(), settings.block);
        if (!seconds) return tl::unexpected(seconds.error());
        lanes[i].rounds.back().push_back(*seconds);
      }
    }
  }
  return {};
}

std::vector<double> round_ratios(const Lane& lane, const Lane& base) {
  std::vector<double> medians;
  for (std::size_t round = 0; round < lane.rounds.size(); ++round) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < lane.rounds[round].size(); ++i) {
      ratios.push_back(lane.rounds[round][i] / base.rounds[round][i]);
    }
    medians.push_back(median(ratios));
  }
  return medians;
}

void print(const Settings& settings, const std::vector<Lane>& lanes, int size) {
  fmt::print("{} batch {} {}, {} rank(s), compression {}, {} rounds of {} steps\n", settings.config,
             settings.batch, settings.precision, size, settings.compression, settings.rounds,
             settings.steps);
  for (const Lane& lane : lanes) {
    std::vector<double> milliseconds;
    for (const auto& blocks : lane.rounds) milliseconds.push_back(median(blocks) * 1e3);
    fmt::print("  {:13} {:7.2f} ms a step, {:6.1f} samples/s, {:.2f} ms of CPU; rounds {:.2f}\n",
               lane.name, median(milliseconds),
               static_cast<double>(settings.batch * size) * 1e3 / median(milliseconds),
               lane.model->mean_cpu_seconds() * 1e3, fmt::join(milliseconds, " "));
  }
  const Lane& synchronised = lanes.front();
  for (std::size_t i = 1; i < lanes.size(); ++i) {
    const Lane& other = i == 1 ? synchronised : lanes[i];
    const std::vector<double> ratios = round_ratios(other, lanes[1]);
    fmt::print("  {}/plain {:.4f}; rounds {:.4f}\n", other.name, median(ratios),
               fmt::join(ratios, " "));
  }
  fmt::print("  {:.1f} MB a step to all-reduces\n",
             static_cast<double>(synchronised.synchronizer->bytes_on_wire()) /
                 synchronised.model->num_steps() / 1e6);
}

Result<void> trace(const std::string& path, Lane& lane) {
  namespace profiler = torch::autograd::profiler;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<torch::profiler::impl::ActivityType> kinds = {
      torch::profiler::impl::ActivityType::CPU, torch::profiler::impl::ActivityType::CUDA};
  profiler::prepareProfiler(config, kinds);
  profiler::enableProfiler(config, kinds);
  const auto done = lane.model->run_block(lane.synchronizer.get(), 3);
  profiler::disableProfiler()->save(path);
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<void> run(const Settings& settings, const Config& config, Runtime& runtime,
                 at::Device device) {
  Communicator* data = &runtime.cpu();
  if (device.is_cuda() && runtime.place().size > 1) {
    const auto gpu = runtime.cuda();
    if (!gpu) return tl::unexpected(gpu.error());
    data = *gpu;
  }
  std::vector<Lane> lanes;
  for (const char* name : {"synchronised", "plain", "plain again"}) {
    if (std::ssize(lanes) < settings.models) lanes.emplace_back(name, settings, config, device);
  }
  auto made = GradientSynchronizer::create(lanes.front().model->parameters(), *data, runtime.cpu(),
                                           sync_options(settings));
  if (!made) return tl::unexpected(made.error());
  lanes.front().synchronizer = std::move(*made);
  if (auto done = run_rounds(settings, lanes, runtime.cpu()); !done) return done;
  const bool is_first = runtime.place().rank == 0;
  if (is_first) print(settings, lanes, runtime.place().size);
  if (settings.trace.empty()) return {};
  const std::string path = is_first ? settings.trace : settings.trace + ".others";
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto done = trace(i == 0 ? path : fmt::format("{}.{}", path, i), lanes[i]);
    if (!done) return done;
  }
  return {};
}

int fail(const Error& error) {
  fmt::print(stderr, "step_bench: {}\n", error.message);
  return static_cast<int>(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  const auto settings = parse(argc, argv);
  if (!settings) {
    fmt::print(stderr, "step_bench: give --name value pairs, as its source says\n");
    return 2;
  }
  auto config = load_config(settings->config);
  if (!config) return fail(config.error());
  config->model.backbone.has_checkpoints = false;
  config->model.has_decoder_checkpoints = false;
  const auto place = place_of_this_process();
  if (!place) return fail(place.error());
  const auto device = choose_device(settings->device, place->local_rank, may_share_gpus());
  if (!device) return fail(device.error());
  InitOptions init;
  init.plan = settings->config;
  init.device = device->is_cuda() ? device->index() : -1;
  init.records_collectives = false;
  auto runtime = Runtime::init(init);
  if (!runtime) return fail(runtime.error());
  auto done = run(*settings, *config, **runtime, *device);
  if (done) done = (*runtime)->finalize();
  if (!done) (*runtime)->leave(done.error());
  return 0;
}
