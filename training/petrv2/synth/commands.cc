#include "training/petrv2/synth/commands.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/plural.h"
#include "runtime/worker_exit.h"
#include "training/petrv2/synth/command_line.h"
#include "training/petrv2/synth/convert.h"
#include "training/petrv2/synth/synth.h"

namespace hvd::petrv2 {
namespace {

using nlohmann::ordered_json;

int fail(const Error& error) {
  write_log(LogLevel::kError, error.message);
  return error.code == ExitCode::kUsage ? static_cast<int>(error.code)
                                        : static_cast<int>(WorkerExit::kData);
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ordered_json to_json(const ConvertReport& report) {
  return {{"split", report.split},
          {"shards", report.num_shards},
          {"scenes", report.num_scenes},
          {"samples", report.num_samples},
          {"steps", report.num_steps},
          {"boxes", report.num_boxes},
          {"class_boxes", report.num_class_boxes},
          {"image_bytes", report.image_bytes}};
}

ordered_json to_json(const SynthReport& report) {
  return {{"scenes", report.num_scenes},
          {"samples", report.num_samples},
          {"images", report.num_images},
          {"objects", report.num_objects}};
}

std::string to_sentence(const ConvertReport& report, const std::string& folder) {
  return fmt::format("{}: split {}, {}, {} with {} ({} of the ten classes), {}, {}\n", folder,
                     report.split, counted(report.num_scenes, "scene"),
                     counted(report.num_samples, "sample"), counted(report.num_boxes, "box label"),
                     report.num_class_boxes, counted(report.num_steps, "step"),
                     counted(report.num_shards, "shard"));
}

std::string to_sentence(const SynthReport& report, const std::string& folder) {
  return fmt::format("{}: {}, {}, {}, {}\n", folder, counted(report.num_scenes, "scene"),
                     counted(report.num_samples, "sample"), counted(report.num_objects, "object"),
                     counted(report.num_images, "image"));
}

// One line that is written over, for people who wait.
ConvertProgress progress_on_terminal() {
  if (::isatty(STDERR_FILENO) == 0) return nullptr;
  return [](std::size_t done, std::size_t total) {
    std::fprintf(stderr, "\rscene %zu of %zu%s", done, total, done == total ? "\n" : "");
  };
}

int make_records(const SynthOptions& options, ordered_json& summary) {
  const ConvertRequest request{options.out, kSynthVersion, "all", options.out + "/records", {}};
  const auto report = convert(request, nullptr);
  if (!report) return fail(report.error());
  summary["records"] = to_json(*report);
  if (!options.as_json) print(to_sentence(*report, request.out));
  return 0;
}

}  // namespace

int run_synth(const std::vector<std::string>& words) {
  const auto options = parse_synth_options(words);
  if (!options) return fail(options.error());
  if (options->wants_help) {
    print(synth_help());
    return 0;
  }
  const auto report =
      write_synth_dataset(options->plan, options->out, std::thread::hardware_concurrency());
  if (!report) return fail(report.error());
  ordered_json summary = to_json(*report);
  if (!options->as_json) print(to_sentence(*report, options->out));
  if (options->with_records) {
    if (const int code = make_records(*options, summary); code != 0) return code;
  }
  if (options->as_json) print(summary.dump() + "\n");
  return 0;
}

int run_convert(const std::vector<std::string>& words) {
  const auto options = parse_convert_options(words);
  if (!options) return fail(options.error());
  if (options->wants_help) {
    print(convert_help());
    return 0;
  }
  const auto report = convert(options->request, progress_on_terminal());
  if (!report) return fail(report.error());
  print(options->as_json ? to_json(*report).dump() + "\n"
                         : to_sentence(*report, options->request.out));
  return 0;
}

}  // namespace hvd::petrv2
