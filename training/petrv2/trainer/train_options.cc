#include "training/petrv2/trainer/train_options.h"

#include <limits>

#include "base/option_table.h"

namespace hvd::petrv2 {
namespace {

constexpr std::uint64_t kMany = 1'000'000'000;
constexpr std::uint64_t kMostThreads = 256;
constexpr std::uint64_t kLongestDay = 86'400;

// Every precision with its word.
std::vector<std::pair<std::string, TrainPrecision>> precisions() {
  std::vector<std::pair<std::string, TrainPrecision>> words;
  for (const auto precision : {TrainPrecision::kFp64, TrainPrecision::kFp32, TrainPrecision::kBf16,
                               TrainPrecision::kFp16}) {
    words.emplace_back(name_of(precision), precision);
  }
  return words;
}

const OptionTable<TrainOptions>& rows() {
  using O = TrainOptions;
  static const OptionTable<O> table = {
      text_row<O>("config", "NAME", "a built-in configuration or a YAML file (required)",
                  &O::config),
      text_row<O>("data", "DIR", "records of petrv2 convert or synth (required)", &O::data),
      text_row<O>("split", "NAME", "of the records (the only one there, else train)", &O::split),
      text_row<O>("out", "DIR", "for checkpoints and TensorBoard events", &O::out),
      text_row<O>("device", "DEVICE", "cpu, cuda or auto (auto)", &O::device),
      choice_row<O, TrainPrecision>("precision", "fp64|fp32|bf16|fp16",
                                    "bf16, fp16: of backbone and neck (fp32)", precisions(),
                                    &O::precision),
      count_row<O>("epochs", "instead of the configuration's", 1, kMany, &O::epochs),
      count_row<O>("steps", "end after so many more", 1, kMany, &O::steps),
      count_row<O>("batch", "samples a micro-batch and rank", 1, 4096, &O::batch),
      count_row<O>("accumulate", "micro-batches a step (1)", 1, 4096, &O::accumulate),
      positive_row<O>("lr", "base rate, instead of the configuration's scaled to the batch",
                      &O::lr),
      count_row<O>("seed", "of weights, order and augmentation (0)", 0,
                   std::numeric_limits<std::uint64_t>::max(), &O::seed),
      text_row<O>("resume", "WHAT", "auto (the newest checkpoint in --out), none, or a file (auto)",
                  &O::resume),
      count_row<O>("save-every", "steps between checkpoints (one at the end of each epoch)", 1,
                   kMany, &O::save_every),
      count_row<O>("keep", "checkpoints (3)", 1, kMany, &O::keep),
      count_row<O>("log-every", "steps a line, off a terminal (10)", 1, kMany, &O::log_every),
      text_row<O>("json", "FILE", "a JSON line for each step; - for standard output", &O::json),
      text_row<O>("sample-log", "FILE", "the sample tokens of each step, a line a step",
                  &O::sample_log),
      count_row<O>("max-skipped", "steps in a row with a gradient that is not finite (20)", 1,
                   kMany, &O::max_skipped),
      count_row<O>("threads", "that read and decode samples (2)", 1, kMostThreads, &O::threads),
      choice_row<O, Remainder>("remainder", "drop|pad", "of an epoch, less than a step (drop)",
                               {{"drop", Remainder::kDrop}, {"pad", Remainder::kPad}},
                               &O::remainder),
      choice_row<O, Recompute>(
          "recompute", "auto|yes|no",
          "activations in the backward pass, for less memory and a slower step; auto: no on a GPU "
          "with memory enough, else as the configuration says (auto)",
          {{"auto", Recompute::kAuto}, {"yes", Recompute::kYes}, {"no", Recompute::kNo}},
          &O::recompute),
      choice_row<O, Backend>(
          "backend", "auto|nccl|tcp", "between the ranks: nccl on GPUs, else tcp (auto)",
          {{"auto", Backend::kAuto}, {"nccl", Backend::kNccl}, {"tcp", Backend::kTcp}},
          &O::backend),
      choice_row<O, Compression>("compression", "none|fp16|bf16",
                                 "of gradients between the ranks, 16 bits instead of 32 (none)",
                                 {{"none", Compression::kNone},
                                  {"fp16", Compression::kFloat16},
                                  {"bf16", Compression::kBfloat16}},
                                 &O::compression),
      count_row<O>("peer-timeout", "seconds for an exchange with the other ranks (600)", 1,
                   kLongestDay, &O::peer_timeout_s),
      flag_row<O>("no-augmentation", "images and boxes as they are", &O::has_augmentation, false),
      flag_row<O>("no-dropout", "none of the configuration's dropout", &O::has_dropout, false),
      flag_row<O>("no-denoising", "no denoising queries", &O::has_denoising, false),
      flag_row<O>("noise-images", "noise instead of images: what is learnt without them",
                  &O::replace_images_by_noise),
      flag_row<O>("help", "print this", &O::wants_help)};
  return table;
}

}  // namespace

const char* name_of(TrainPrecision precision) {
  switch (precision) {
    case TrainPrecision::kFp64:
      return "fp64";
    case TrainPrecision::kFp32:
      return "fp32";
    case TrainPrecision::kBf16:
      return "bf16";
    case TrainPrecision::kFp16:
      return "fp16";
  }
  return "";
}

Result<TrainOptions> parse_train_options(const std::vector<std::string>& words) {
  auto options = parse_options(rows(), "petrv2 train", words);
  if (!options || options->wants_help) return options;
  for (const auto& [name, value] :
       {std::pair("config", &options->config), {"data", &options->data}}) {
    if (auto done = require_option(*value, name, "petrv2 train"); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (options->device != "cpu" && options->device != "cuda" && options->device != "auto") {
    return make_error(ExitCode::kUsage, "--device {} is not one of cpu, cuda, auto",
                      options->device);
  }
  if (options->backend == Backend::kNccl && options->device == "cpu") {
    return make_error(ExitCode::kUsage, "--backend nccl is for GPUs; --device cpu has tcp");
  }
  if (options->out.empty() && options->save_every > 0) {
    return make_error(ExitCode::kUsage, "--save-every needs --out, the folder for the checkpoints");
  }
  return options;
}

std::string train_help() {
  return option_help(rows(),
                     "petrv2 train --config NAME --data DIR [options]: train PETRv2, alone or as "
                     "the ranks of hvdrun.\nSIGUSR1: save at the next step; SIGTERM: save and end "
                     "(143).\n");
}

}  // namespace hvd::petrv2
