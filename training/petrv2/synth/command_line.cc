#include "training/petrv2/synth/command_line.h"

#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/parse_number.h"
#include "base/option_table.h"

namespace hvd::petrv2 {
namespace {

constexpr std::uint64_t kMostScenes = 9999;  // scene-0001 .. scene-9999
constexpr std::uint64_t kMostSamples = 400;
constexpr std::uint64_t kMostBoxes = 200;
constexpr std::uint64_t kMostShards = 99999;
constexpr int kSmallestSide = 64;  // px
constexpr int kLongestSide = 4096;

std::optional<int> parse_side(std::string_view text) {
  const auto side = parse_number<int>(text);
  return side && *side >= kSmallestSide && *side <= kLongestSide ? side : std::nullopt;
}

Result<ImageSize> parse_image_size(std::string_view text) {
  const auto cross = text.find('x');
  const auto width = parse_side(text.substr(0, cross));
  const auto height =
      cross == std::string_view::npos ? std::nullopt : parse_side(text.substr(cross + 1));
  if (width && height) return ImageSize{*width, *height};
  return make_error(ExitCode::kUsage,
                    "--image-size {} is no size; write WIDTHxHEIGHT, each from {} to {}, as in "
                    "800x450",
                    text, kSmallestSide, kLongestSide);
}

// A number that goes to where `store` puts it.
template <typename Options>
OptionRow<Options> number_row(const char* name, const char* help, std::uint64_t lowest,
                              std::uint64_t highest,
                              std::function<void(Options&, std::uint64_t)> store) {
  return {name, "N", help, [=](const std::string& value, Options& options) {
            return parse_whole(name, value, lowest, highest).map([&](std::uint64_t number) {
              store(options, number);
            });
          }};
}

OptionRow<ConvertOptions> request_row(const char* name, const char* argument, const char* help,
                                      std::string ConvertRequest::*target) {
  const auto whole = text_row(name, argument, help, target);
  return {name, argument, help, [=](const std::string& value, ConvertOptions& options) {
            return whole.apply(value, options.request);
          }};
}

const OptionTable<SynthOptions>& synth_table() {
  using O = SynthOptions;
  static const OptionTable<O> rows = {
      text_row("out", "DIR", "where the data set goes (required)", &O::out),
      number_row<O>("scenes", "how many scenes (8)", 1, kMostScenes,
                    [](O& o, auto number) { o.plan.num_scenes = number; }),
      number_row<O>("samples-per-scene", "key frames of a scene, at 2 Hz (6)", 1, kMostSamples,
                    [](O& o, auto number) { o.plan.samples_per_scene = number; }),
      number_row<O>("seed", "of everything that is drawn (1)", 0,
                    std::numeric_limits<std::uint64_t>::max(),
                    [](O& o, auto number) { o.plan.seed = number; }),
      {"image-size", "WxH", "size of the images, px (800x450)",
       [](const std::string& value, O& o) {
         return parse_image_size(value).map([&](ImageSize size) { o.plan.image = size; });
       }},
      number_row<O>("boxes", "objects of a scene, at most (20)", 0, kMostBoxes,
                    [](O& o, auto number) { o.plan.objects_per_scene = number; }),
      flag_row("records", "convert all scenes to DIR/records, too", &O::with_records),
      flag_row("json", "print the counts as one JSON object", &O::as_json),
      flag_row("help", "print this", &O::wants_help)};
  return rows;
}

const OptionTable<ConvertOptions>& convert_table() {
  using O = ConvertOptions;
  static const OptionTable<O> rows = {
      request_row("dataroot", "DIR", "the data set's folder (required)", &ConvertRequest::dataroot),
      request_row("version", "NAME", "folder of its tables, as v1.0-trainval (required)",
                  &ConvertRequest::version),
      request_row(
          "split", "SPLIT",
          "all; train, val, mini_train, mini_val, listed in DATAROOT/splits/SPLIT.txt; or a "
          "file of scene names (all)",
          &ConvertRequest::split),
      request_row("out", "DIR", "where the shards go (required)", &ConvertRequest::out),
      number_row<O>("shards", "how many shards (one for every seven scenes)", 1, kMostShards,
                    [](O& o, auto number) { o.request.num_shards = number; }),
      flag_row("json", "print the counts as one JSON object", &O::as_json),
      flag_row("help", "print this", &O::wants_help)};
  return rows;
}

}  // namespace

Result<SynthOptions> parse_synth_options(const std::vector<std::string>& words) {
  auto options = parse_options(synth_table(), "petrv2 synth", words);
  if (!options || options->wants_help) return options;
  if (auto done = require_option(options->out, "out", "petrv2 synth"); !done) {
    return tl::unexpected(done.error());
  }
  return options;
}

Result<ConvertOptions> parse_convert_options(const std::vector<std::string>& words) {
  auto options = parse_options(convert_table(), "petrv2 convert", words);
  if (!options || options->wants_help) return options;
  const ConvertRequest& request = options->request;
  for (const auto& [name, value] : {std::pair("dataroot", &request.dataroot),
                                    {"version", &request.version},
                                    {"out", &request.out}}) {
    if (auto done = require_option(*value, name, "petrv2 convert"); !done)
      return tl::unexpected(done.error());
  }
  return options;
}

std::string synth_help() {
  return option_help(
      synth_table(),
      "petrv2 synth --out DIR [options]: write a small made-up data set in the layout of "
      "nuScenes,\nwhose images show its boxes.\n");
}

std::string convert_help() {
  return option_help(
      convert_table(),
      "petrv2 convert --dataroot DIR --version NAME --out DIR [options]: write nuScenes "
      "v1.0 as\nTFRecord for petrv2 train.\n");
}

}  // namespace hvd::petrv2
