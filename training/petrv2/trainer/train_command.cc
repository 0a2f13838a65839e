#include "training/petrv2/trainer/train_command.h"

#include <torch/headeronly/version.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/host_name.h"
#include "base/log.h"
#include "base/plural.h"
#include "hvdrun/gradient_synchronizer.h"
#include "hvdrun/runtime.h"
#include "runtime/worker_exit.h"
#include "training/formats/crc32c.h"
#include "training/petrv2/trainer/device.h"
#include "training/petrv2/trainer/resume.h"
#include "training/petrv2/trainer/stop_signals.h"
#include "training/petrv2/trainer/trainer.h"

namespace hvd::petrv2 {
namespace {

constexpr auto kConnectLimit = std::chrono::seconds(120);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

at::ScalarType weight_type(TrainPrecision precision) {
  return precision == TrainPrecision::kFp64 ? at::kDouble : at::kFloat;
}

SampleOptions sample_options(const Config& config, const TrainOptions& options) {
  SampleOptions sample;
  sample.height = config.model.image.height;
  sample.width = config.model.image.width;
  sample.augmentation = {config.train.resize_range, config.train.flip_probability,
                         config.train.rotation_range, config.train.scale_range};
  sample.seed = options.seed;
  sample.has_augmentation = options.has_augmentation;
  sample.replace_images_by_noise = options.replace_images_by_noise;
  return sample;
}

// Of the samples and their boxes: another data set has another sum.
std::uint32_t records_sum(const RecordSet& records) {
  std::string text;
  for (const SampleEntry& sample : records.samples()) {
    text += fmt::format("{} {}\n", sample.token, sample.num_boxes);
  }
  return crc32c(text);
}

// What must be the same on all ranks.
JobFacts facts_of(const TrainOptions& o, const Config& config, const std::string& data,
                  const Petrv2& model) {
  std::size_t num_values = 0;
  for (const Parameter& parameter : model.parameters()) {
    num_values += static_cast<std::size_t>(parameter.tensor.numel());
  }
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  const auto switched = [](bool is_on) { return std::string(is_on ? "on" : "off"); };
  return {
      {"the configuration", fmt::format("{} (sum {:08x})", config.name, crc32c(config.yaml))},
      {"the number of parameters", text(num_values)},
      {"the data set", data},
      {"--split", o.split},
      {"--batch", text(o.batch)},
      {"--accumulate", text(o.accumulate)},
      {"--seed", text(o.seed)},
      {"--precision", name_of(o.precision)},
      {"--epochs", text(o.epochs)},
      {"--steps", text(o.steps)},
      {"--lr", text(o.lr)},
      {"--remainder", o.remainder == Remainder::kPad ? "pad" : "drop"},
      {"--save-every", text(o.save_every)},
      {"--max-skipped", text(o.max_skipped)},
      {"--out", o.out.empty() ? "not given" : "given"},
      {"augmentation", switched(o.has_augmentation)},
      {"dropout", switched(o.has_dropout)},
      {"denoising", switched(o.has_denoising)},
      {"--noise-images", switched(o.replace_images_by_noise)},
  };
}

struct RankZeroOutputs {
  std::optional<CheckpointStore> store;
  std::optional<Progress> progress;
  std::optional<EventWriter> events;
  File sample_log;
};

Result<RankZeroOutputs> open_outputs(const TrainOptions& options) {
  RankZeroOutputs outputs;
  if (!options.out.empty()) {
    auto store = CheckpointStore::open(options.out, options.keep);
    if (!store) return with_exit(store.error(), WorkerExit::kData);
    outputs.store = std::move(*store);
    auto events = EventWriter::create(options.out, static_cast<double>(time(nullptr)), host_name());
    if (!events) return with_exit(events.error(), WorkerExit::kData);
    outputs.events = std::move(*events);
  }
  auto progress = Progress::open({options.log_every, options.json});
  if (!progress) return with_exit(progress.error(), WorkerExit::kData);
  outputs.progress = std::move(*progress);
  if (!options.sample_log.empty()) {
    outputs.sample_log.reset(std::fopen(options.sample_log.c_str(), "ae"));
    if (!outputs.sample_log) {
      return worker_error(WorkerExit::kData, "{}: cannot be opened: {}", options.sample_log,
                          std::strerror(errno));
    }
  }
  return outputs;
}

class TrainCommand {
 public:
  // `runtime`: not owned, outlives this.
  TrainCommand(TrainOptions options, Config config, at::Device device, Runtime& runtime)
      : options_(std::move(options)),
        config_(std::move(config)),
        device_(device),
        runtime_(runtime),
        communicator_(runtime.cpu()),
        agreement_(communicator_, timeout()) {}

  Result<int> run() {
    Result<RecordSet> records = open_records();
    Result<void> ready;
    if (!records) ready = tl::unexpected(records.error());
    if (auto all = agreement_.check_all_ready(ready); !all) {
      return tl::unexpected(all.error());
    }
    return train(*records);
  }

 private:
  Result<RecordSet> open_records() {
    auto splits = list_splits(options_.data);
    if (!splits) {
      return make_error(ExitCode::kUsage,
                        "--data {}: {}; give the folder of petrv2 convert or synth", options_.data,
                        splits.error().message);
    }
    if (options_.split.empty()) options_.split = splits->size() == 1 ? splits->front() : "train";
    if (std::find(splits->begin(), splits->end(), options_.split) == splits->end()) {
      return make_error(ExitCode::kUsage,
                        "--data {} has no split \"{}\" ({}); give the folder of the records that "
                        "petrv2 convert or synth --records wrote, and --split",
                        options_.data, options_.split,
                        splits->empty() ? "no records at all"
                                        : fmt::format("there: {}", fmt::join(*splits, ", ")));
    }
    auto records = RecordSet::open(options_.data, options_.split);
    if (!records) return with_exit(records.error(), WorkerExit::kData);
    data_ = fmt::format("{} samples, sum {:08x}", records->samples().size(), records_sum(*records));
    return records;
  }

  [[nodiscard]] std::chrono::milliseconds timeout() const {
    return std::chrono::seconds(options_.peer_timeout_s);
  }
  [[nodiscard]] bool is_first() const { return communicator_.rank() == 0; }

  // Between the GPUs where all ranks have one, else between the CPUs.
  Result<Communicator*> gradient_communicator() {
    const bool is_nccl = options_.backend != Backend::kTcp && device_.is_cuda();
    if (communicator_.size() == 1 || !is_nccl) return &communicator_;
    return runtime_.cuda();
  }

  Result<std::unique_ptr<GradientSynchronizer>> make_synchronizer(const Petrv2& model) {
    auto communicator = gradient_communicator();
    if (!communicator) return tl::unexpected(communicator.error());
    SyncOptions sync;
    sync.compression = options_.compression;
    sync.timeout = timeout();
    sync.num_riders = num_riders(step_value_names(config_.model, options_.has_denoising).size());
    sync.board = &runtime_.activity();
    sync.recorder = &runtime_.recorder();
    sync.timeline = runtime_.timeline();
    const auto settled = sync_options_from_environment(sync);
    if (!settled) return tl::unexpected(settled.error());
    return GradientSynchronizer::create(trainable_parameters(model), **communicator, communicator_,
                                        *settled);
  }

  Result<int> train(const RecordSet& records) {
    Petrv2 model(config_.model, device_, weight_type(options_.precision), options_.seed);
    if (device_.is_cuda()) model.use_channels_last();
    if (auto same = agreement_.check_same_job(facts_of(options_, config_, data_, model)); !same) {
      return tl::unexpected(same.error());
    }
    auto gradients = make_synchronizer(model);
    if (!gradients) return tl::unexpected(gradients.error());
    StepSpans spans(runtime_.timeline(), device_);
    StepRunner runner(model, **gradients, spans, config_.train, options_);
    TrainState state(model, runner.optimiser(), runner.loss_scale());
    Resume resume(options_, data_, state);
    auto outputs = open_and_resume(resume, state);
    if (!outputs) return tl::unexpected(outputs.error());
    auto loader = start_loader(records, resume.position().sampler);
    Result<void> ready;
    if (!loader) ready = tl::unexpected(loader.error());
    if (auto all = agreement_.check_all_ready(ready); !all) {
      return tl::unexpected(all.error());
    }
    return train_on(model, records, runner, spans, state, **loader, resume, *outputs);
  }

  Result<RankZeroOutputs> open_and_resume(Resume& resume, TrainState& state) {
    RankZeroOutputs outputs;
    Result<void> outcome;
    resume.position().seed = options_.seed;
    if (is_first()) {
      auto opened = open_outputs(options_);
      if (!opened) outcome = tl::unexpected(opened.error());
      if (opened) outputs = std::move(*opened);
      if (outcome) outcome = resume.read();
    }
    if (auto done = agreement_.share_outcome(outcome); !done) return tl::unexpected(done.error());
    std::string text = resume.text();
    if (auto done = agreement_.share_text(text); !done) return tl::unexpected(done.error());
    if (auto done = resume.take_text(text); !done) return tl::unexpected(done.error());
    if (auto done = state.broadcast(communicator_, {timeout(), nullptr}); !done) {
      return tl::unexpected(done.error());
    }
    return outputs;
  }

  Result<std::unique_ptr<Loader>> start_loader(const RecordSet& records, SamplerPosition start) {
    LoaderOptions options;
    options.sample = sample_options(config_, options_);
    options.sampler.num_ranks = static_cast<std::uint32_t>(communicator_.size());
    options.sampler.batch_size = options_.batch;
    options.sampler.num_micro_batches = options_.accumulate;
    options.sampler.remainder = options_.remainder;
    options.sampler.seed = options_.seed;
    options.rank = static_cast<std::uint32_t>(communicator_.rank());
    options.start = start;
    options.num_epochs = options_.epochs;
    options.num_threads = options_.threads;
    options.num_ahead = std::max<std::uint32_t>(4, 2 * options_.accumulate);
    SamplerOptions shape = options.sampler;
    shape.num_samples = records.samples().size();
    if (auto sampler = Sampler::create(shape); !sampler) {
      return make_error(ExitCode::kUsage, "{}", sampler.error().message);
    }
    auto loader = Loader::start(records, options);
    if (!loader) return with_exit(loader.error(), WorkerExit::kData);
    return loader;
  }

  Result<int> train_on(const Petrv2& model, const RecordSet& records, StepRunner& runner,
                       StepSpans& spans, TrainState& state, Loader& loader, Resume& resume,
                       RankZeroOutputs& outputs) {
    const TrainPosition& start = resume.position();
    const std::uint64_t total_batch = loader.sampler().step_size();
    const ScaledRate scaled = scale_rate(config_.train, total_batch);
    const double base = options_.lr > 0 ? options_.lr : scaled.base;
    const Schedule schedule{static_cast<int>(options_.epochs), config_.train.warmup_iterations,
                            config_.train.warmup_ratio, config_.train.min_lr_ratio, total_batch};
    std::uint64_t num_steps = loader.sampler().steps_left(start.sampler, options_.epochs);
    if (options_.steps > 0) num_steps = std::min(num_steps, options_.steps);
    if (is_first()) print_start(loader, base, scaled, resume, num_steps);
    StepLog step_log(step_value_names(config_.model, options_.has_denoising),
                     {start.num_skipped, start.num_skipped_in_a_row}, std::move(outputs.progress),
                     std::move(outputs.events));
    StepFeed feed(loader, options_.accumulate, device_);
    Trainer trainer({options_, config_, records, data_, model, communicator_, agreement_,
                     runtime_.activity(), spans, runner, state, loader.sampler(), feed, step_log,
                     outputs.store ? &*outputs.store : nullptr, outputs.sample_log.get()},
                    schedule, base, start, num_steps);
    auto code = trainer.run();
    step_log.finish();
    if (!code) return code;
    print_end(trainer.position(), state, *code);
    return code;
  }

  void print_start(const Loader& loader, double base, const ScaledRate& scaled,
                   const Resume& resume, std::uint64_t num_steps) const {
    const std::string rule = options_.lr > 0 ? std::string("--lr") : scaled.rule;
    say(fmt::format(
        "{}: {} x {} (--accumulate) x {} (--batch) = {} a step; learning rate {:g} ({})",
        config_.name, counted(static_cast<std::size_t>(communicator_.size()), "rank"),
        options_.accumulate, options_.batch, counted(loader.sampler().step_size(), "sample"), base,
        rule));
    say(fmt::format(
        "{}; {} epochs; {} on {}, activations {}; seed {}; {}", loader.note(), options_.epochs,
        name_of(options_.precision), device_.str(), recompute_text(config_.model), options_.seed,
        options_.out.empty() ? "no --out: nothing is saved"
                             : fmt::format("checkpoints and events in {}", options_.out)));
    if (scaled.warning && options_.lr <= 0) log(LogLevel::kWarning, "{}", *scaled.warning);
    if (!resume.source().empty()) {
      const TrainPosition& at = resume.position();
      const std::uint64_t num_left =
          loader.sampler().options().num_samples - at.sampler.samples_seen;
      say(fmt::format(
          "resumed from {}: step {}, {} samples of epoch {} seen, {} left in steps of {}",
          resume.source(), at.step, at.sampler.samples_seen, at.sampler.epoch, num_left,
          loader.sampler().step_size()));
      if (num_steps == 0) {
        say(fmt::format("nothing is left to do: {} epochs are done; give more --epochs",
                        options_.epochs));
      }
    }
  }

  void print_end(const TrainPosition& position, const TrainState& state, int code) const {
    say(fmt::format("rank {}: {} after step {}, {} skipped; weights {:08x}", communicator_.rank(),
                    code == 0 ? "done" : "stopped", position.step,
                    counted(position.num_skipped, "step"), state.weights_checksum()));
    if (code != 0 && is_first()) {
      say(options_.out.empty() ? "nothing was saved: there is no --out"
                               : fmt::format("saved as {}; the same command goes on from there",
                                             checkpoint_path(options_.out, position.step)));
    }
  }

  // With JSON on standard output the lines for people go to standard error.
  void say(const std::string& line) const {
    std::FILE* to = options_.json == "-" ? stderr : stdout;
    std::fputs((line + "\n").c_str(), to);
    std::fflush(to);
  }

  TrainOptions options_;
  const Config config_;
  std::string data_;  // which data set it is
  const at::Device device_;
  Runtime& runtime_;
  Communicator& communicator_;  // of the CPUs
  RankAgreement agreement_;
};

int fail(const Error& error) {
  log(LogLevel::kError, "{}", error.message);
  return static_cast<int>(error.code);
}

// What the ranks must have in common before they know their data.
std::string plan_of(const TrainOptions& options, const Config& config) {
  return fmt::format("{} (sum {:08x}), --precision={}, --compression={}", config.name,
                     crc32c(config.yaml), name_of(options.precision), name_of(options.compression));
}

Result<int> run_connected(TrainOptions options, Config config, at::Device device,
                          Runtime& runtime) {
  const auto limit = std::chrono::seconds(options.peer_timeout_s);
  auto code = TrainCommand(std::move(options), std::move(config), device, runtime).run();
  if (!code) return code;
  if (auto done = runtime.finalize(limit); !done) return tl::unexpected(done.error());
  return code;
}

}  // namespace

int run_train(const std::vector<std::string>& words) {
  auto options = parse_train_options(words);
  if (!options) return fail(options.error());
  if (options->wants_help) {
    std::fputs(train_help().c_str(), stdout);
    return 0;
  }
  auto config = load_config(options->config);
  if (!config) return fail({config.error().message, ExitCode::kUsage});
  if (options->batch == 0) {
    options->batch = static_cast<std::uint32_t>(config->train.batch_per_rank);
  }
  if (options->epochs == 0) options->epochs = static_cast<std::uint64_t>(config->train.epochs);
  const auto place = place_of_this_process();
  if (!place) return fail(place.error());
  const auto device = choose_device(options->device, place->local_rank, may_share_gpus());
  if (!device) return fail(device.error().within(fmt::format("rank {}", place->rank)));
  const auto& image = config->model.image;
  settle_recompute(
      config->model, options->recompute,
      {static_cast<std::uint64_t>(options->batch) * kNumViews *
           static_cast<std::uint64_t>(image.height * image.width),
       options->precision == TrainPrecision::kBf16 || options->precision == TrainPrecision::kFp16,
       total_memory(*device)});
  InitOptions init;
  init.start_timeout = std::min<std::chrono::milliseconds>(
      kConnectLimit, std::chrono::seconds(options->peer_timeout_s));
  init.plan = plan_of(*options, *config);
  init.device = device->is_cuda() ? device->index() : -1;
  init.torch_version = TORCH_VERSION;
  init.records_collectives = false;  // the synchronizer records its buckets
  auto runtime = Runtime::init(init);
  if (!runtime) return fail(runtime.error());
  install_stop_signals();
  try {
    auto code = run_connected(std::move(*options), std::move(*config), *device, **runtime);
    if (code) return *code;
    (*runtime)->leave(std::move(code.error()));
  } catch (const std::exception& error) {
    (*runtime)->leave(with_exit({error.what()}, WorkerExit::kInternal).value());
  }
}

}  // namespace hvd::petrv2
