// What `petrv2 train` is told on its command line. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/sync_options.h"
#include "training/petrv2/data/sampler.h"
#include "training/petrv2/recompute.h"

namespace hvd::petrv2 {

// Of the weights (fp64, or fp32 for the rest), and of backbone and neck (bf16, fp16 by autocast).
enum class TrainPrecision { kFp64, kFp32, kBf16, kFp16 };

// As on the command line: "bf16".
[[nodiscard]] const char* name_of(TrainPrecision precision);

// How the ranks exchange gradients.
enum class Backend { kAuto, kNccl, kTcp };

struct TrainOptions {
  std::string config;
  std::string data;             // folder of records
  std::string split;            // empty: the only one, or train
  std::string out;              // checkpoints and events; empty: none are written
  std::string device = "auto";  // cpu, cuda, auto
  TrainPrecision precision = TrainPrecision::kFp32;
  std::uint64_t epochs = 0;      // 0: the configuration's
  std::uint64_t steps = 0;       // this run's; 0: to the end of the last epoch
  std::uint32_t batch = 0;       // samples a micro-batch and rank; 0: the configuration's
  std::uint32_t accumulate = 1;  // micro-batches a step
  double lr = 0;                 // at the total batch in use; 0: the configuration's, scaled
  std::uint64_t seed = 0;
  std::string resume = "auto";     // auto, none, or a checkpoint's path
  std::uint64_t save_every = 0;    // steps; 0: at the end of each epoch only
  std::uint64_t keep = 3;          // checkpoints
  std::uint64_t log_every = 10;    // steps
  std::string json;                // file of JSON lines; "-": standard output
  std::string sample_log;          // file: the tokens of each step's samples
  std::uint64_t max_skipped = 20;  // in a row
  std::uint32_t threads = 2;       // that read and decode
  Remainder remainder = Remainder::kDrop;
  bool has_augmentation = true;
  bool has_dropout = true;
  bool has_denoising = true;
  bool replace_images_by_noise = false;
  Recompute recompute = Recompute::kAuto;
  Backend backend = Backend::kAuto;
  Compression compression = Compression::kNone;
  std::uint64_t peer_timeout_s = 600;  // for one collective operation
  bool wants_help = false;
};

// `words` are the options, without the subcommand. Exit code 2 on every error.
[[nodiscard]] Result<TrainOptions> parse_train_options(const std::vector<std::string>& words);
[[nodiscard]] std::string train_help();

}  // namespace hvd::petrv2
