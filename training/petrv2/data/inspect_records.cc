#include "training/petrv2/data/inspect_records.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/plural.h"
#include "training/petrv2/data/box_filter.h"
#include "training/petrv2/data/record_set.h"

namespace hvd::petrv2 {
namespace {

using nlohmann::ordered_json;

std::size_t count_samples(const RecordSet& set) { return set.samples().size(); }

ordered_json describe_shards(const RecordSet& set) {
  ordered_json shards = ordered_json::array();
  for (const Shard& shard : set.shards()) {
    shards.push_back({{"file", shard.reader.path()},
                      {"bytes", shard.reader.file_size()},
                      {"records", shard.index.size()},
                      {"samples", shard.num_samples}});
  }
  return shards;
}

// Boxes of all samples by class, "other" for the rest; and how many of them are trained on.
Result<ordered_json> describe_boxes(const RecordSet& set) {
  std::array<std::uint64_t, kClassNames.size()> by_class{};
  std::uint64_t num_others = 0;
  std::uint64_t num_trained = 0;
  for (std::size_t i = 0; i < set.samples().size(); ++i) {
    const auto sample = set.read_sample(i);
    if (!sample) return tl::unexpected(sample.error());
    for (const AnnotatedBox& annotated : sample->boxes) {
      const int label = annotated.box.label;
      ++(label < 0 ? num_others : by_class[static_cast<std::size_t>(label)]);
    }
    num_trained += count_training_boxes(*sample);
  }
  ordered_json boxes;
  for (std::size_t label = 0; label < by_class.size(); ++label) {
    boxes[std::string(kClassNames[label])] = by_class[label];
  }
  boxes["other"] = num_others;
  return ordered_json{{"by_class", boxes}, {"trained_on", num_trained}};
}

Result<ordered_json> describe_first_sample(const RecordSet& set) {
  if (set.samples().empty()) return ordered_json();
  const auto sample = set.read_sample(0);
  if (!sample) return tl::unexpected(sample.error());
  const auto step = set.read_step(set.samples()[0].shard, sample->cur_step);
  if (!step) return tl::unexpected(step.error());
  ordered_json jpeg_bytes = ordered_json::array();
  for (const std::string& jpeg : step->jpeg) jpeg_bytes.push_back(jpeg.size());
  return ordered_json{{"sample_token", sample->sample_token},
                      {"scene", sample->scene},
                      {"timestamp_us", sample->timestamp_us},
                      {"lidar2global", sample->lidar2global},
                      {"lidar2ego", sample->lidar2ego},
                      {"ego2global", sample->ego2global},
                      {"cur_step", sample->cur_step},
                      {"prev_steps", sample->prev_steps},
                      {"boxes", sample->boxes.size()},
                      {"map_bytes", sample->map_bits.size()},
                      {"step_id", step->step_id},
                      {"is_key", step->is_key},
                      {"image_timestamp_us", step->timestamp_us},
                      {"image_height", step->height},
                      {"image_width", step->width},
                      {"image_bytes", jpeg_bytes}};
}

Result<ordered_json> describe_split(const std::string& folder, const std::string& split) {
  const auto set = RecordSet::open(folder, split);
  if (!set) return tl::unexpected(set.error());
  const auto boxes = describe_boxes(*set);
  if (!boxes) return tl::unexpected(boxes.error());
  const auto first = describe_first_sample(*set);
  if (!first) return tl::unexpected(first.error());
  std::size_t num_records = 0;
  for (const Shard& shard : set->shards()) num_records += shard.index.size();
  return ordered_json{{"split", split},
                      {"samples", count_samples(*set)},
                      {"steps", num_records - count_samples(*set)},
                      {"boxes", *boxes},
                      {"shards", describe_shards(*set)},
                      {"first_sample", *first}};
}

Result<ordered_json> describe_folder(const std::string& folder) {
  const auto splits = list_splits(folder);
  if (!splits) return tl::unexpected(splits.error());
  if (splits->empty()) {
    return make_error(
        "{} holds no file NAME-00000-of-00001.tfrecord; write some with `petrv2 synth` or "
        "`petrv2 convert`",
        folder);
  }
  ordered_json all = ordered_json::array();
  for (const std::string& split : *splits) {
    auto described = describe_split(folder, split);
    if (!described) return tl::unexpected(std::move(described).error());
    all.push_back(std::move(*described));
  }
  return ordered_json{{"folder", folder}, {"splits", all}};
}

void print_split(const ordered_json& split) {
  fmt::print("{}: {}, {} in {}\n", split["split"].get<std::string>(),
             counted(split["samples"].get<std::size_t>(), "sample"),
             counted(split["steps"].get<std::size_t>(), "step"),
             counted(split["shards"].size(), "shard"));
  for (const auto& shard : split["shards"]) {
    fmt::print("  {}: {} bytes, {}, {}\n", shard["file"].get<std::string>(),
               shard["bytes"].get<std::uint64_t>(),
               counted(shard["records"].get<std::size_t>(), "record"),
               counted(shard["samples"].get<std::size_t>(), "sample"));
  }
  fmt::print("  boxes ({} trained on):", split["boxes"]["trained_on"].get<std::uint64_t>());
  for (const auto& [name, count] : split["boxes"]["by_class"].items()) {
    fmt::print(" {} {}", name, count.get<std::uint64_t>());
  }
  fmt::print("\n  first sample:\n");
  for (const auto& [key, value] : split["first_sample"].items()) {
    fmt::print("    {:<20} {}\n", key, value.dump());
  }
}

}  // namespace

int run_inspect_records(const std::string& folder, bool json) {
  const auto description = describe_folder(folder);
  if (!description) {
    fmt::print(stderr, "petrv2 inspect: {}\n", description.error().message);
    return 1;
  }
  if (json) {
    fmt::print("{}\n", description->dump(2));
    return 0;
  }
  for (const auto& split : (*description)["splits"]) print_split(split);
  return 0;
}

}  // namespace hvd::petrv2
