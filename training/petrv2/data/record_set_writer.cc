#include <algorithm>
#include <filesystem>
#include <system_error>

#include "training/formats/tfrecord.h"
#include "training/formats/tfrecord_index.h"
#include "training/petrv2/data/record_set.h"
#include "training/petrv2/data/records.h"

namespace hvd::petrv2 {
namespace {

struct OpenShard {
  TfrecordWriter writer;
  TfrecordIndex index;
};

// Refuses to add to, or to mix with, what is there.
Result<void> check_no_shards(const std::string& folder, const std::string& split) {
  auto splits = list_splits(folder);
  if (!splits) return tl::unexpected(std::move(splits).error());
  if (std::find(splits->begin(), splits->end(), split) == splits->end()) return {};
  return make_error("{} already holds shards of \"{}\"; remove them or name another folder", folder,
                    split);
}

}  // namespace

struct RecordSetWriter::State {
  std::vector<OpenShard> shards;
  std::string scene;      // of the records being written
  std::size_t shard = 0;  // where they go
  bool has_scene = false;

  // The shard of a scene; a new scene goes to the smallest, the first of equals.
  OpenShard& shard_of(const std::string& name) {
    if (!has_scene || name != scene) {
      const auto smallest = std::min_element(
          shards.begin(), shards.end(),
          [](const OpenShard& a, const OpenShard& b) { return a.writer.size() < b.writer.size(); });
      shard = static_cast<std::size_t>(smallest - shards.begin());
      scene = name;
      has_scene = true;
    }
    return shards[shard];
  }

  Result<std::int64_t> append(const std::string& name, const std::string& payload) {
    OpenShard& target = shard_of(name);
    const Result<std::uint64_t> offset = target.writer.append(payload);
    if (!offset) return tl::unexpected(offset.error());
    target.index.push_back({*offset, payload.size() + kTfrecordOverhead});
    return static_cast<std::int64_t>(target.index.size()) - 1;
  }
};

RecordSetWriter::RecordSetWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordSetWriter::RecordSetWriter(RecordSetWriter&&) noexcept = default;
RecordSetWriter& RecordSetWriter::operator=(RecordSetWriter&&) noexcept = default;
RecordSetWriter::~RecordSetWriter() = default;

Result<RecordSetWriter> RecordSetWriter::create(const std::string& folder, const std::string& split,
                                                std::size_t num_shards) {
  if (num_shards == 0 || num_shards > kMostShards) {
    return make_error("a record set has 1 to {} shards, not {}", kMostShards, num_shards);
  }
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return make_error("make folder {}: {}", folder, failure.message());
  if (const auto is_free = check_no_shards(folder, split); !is_free) {
    return tl::unexpected(is_free.error());
  }
  auto state = std::make_unique<State>();
  for (std::size_t shard = 0; shard < num_shards; ++shard) {
    const std::string name = shard_file_name(split, shard, num_shards, ".tfrecord");
    auto writer = TfrecordWriter::create((std::filesystem::path(folder) / name).string());
    if (!writer) return tl::unexpected(std::move(writer).error());
    state->shards.push_back({std::move(*writer), {}});
  }
  return RecordSetWriter(std::move(state));
}

Result<std::int64_t> RecordSetWriter::add_step(const StepRecord& step) {
  return state_->append(step.scene, encode_step(step));
}

Result<void> RecordSetWriter::add_sample(const SampleRecord& sample) {
  return state_->append(sample.scene, encode_sample(sample)).map([](std::int64_t) {});
}

Result<void> RecordSetWriter::close() {
  for (OpenShard& shard : state_->shards) {
    if (auto closed = shard.writer.close(); !closed) return closed;
    auto written = write_tfrecord_index(tfrecord_index_path(shard.writer.path()), shard.index);
    if (!written) return written;
  }
  return {};
}

}  // namespace hvd::petrv2
