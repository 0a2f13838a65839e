// A split of a data set on disk, opened for reading: its shards, checked against their indexes, and
// the list of its samples in time order with the number of boxes that each trains on (known from
// the labels; no image is read for it).
//
// Lifecycle: open() maps the shards and reads all labels; then const. The files must not be changed
// meanwhile. Thread: any number at a time. Each error is one sentence that names file, record and
// offset, and the remedy where there is one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "training/formats/tfrecord.h"
#include "training/formats/tfrecord_index.h"
#include "training/petrv2/data/records.h"

namespace hvd::petrv2 {

inline constexpr std::size_t kMostShards = 99'999;

struct SampleEntry {
  std::string token;
  std::int64_t timestamp_us = 0;
  std::size_t shard = 0;
  std::size_t record = 0;       // number in the shard
  std::uint32_t num_boxes = 0;  // that it trains on
};

struct Shard {
  TfrecordReader reader;
  TfrecordIndex index;
  std::size_t num_samples = 0;
};

// The names of the splits whose shards lie in a folder ("train", "val"), sorted.
[[nodiscard]] Result<std::vector<std::string>> list_splits(const std::string& folder);

class RecordSet {
 public:
  // All shards FOLDER/SPLIT-*-of-N.tfrecord, with their indexes.
  [[nodiscard]] static Result<RecordSet> open(const std::string& folder, const std::string& split);

  // By time, then token; the position is a sample's index in the data set.
  [[nodiscard]] const std::vector<SampleEntry>& samples() const { return samples_; }
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }

  [[nodiscard]] Result<SampleRecord> read_sample(std::size_t index) const;
  // The step with a number that a sample of this shard names.
  [[nodiscard]] Result<StepRecord> read_step(std::size_t shard, std::int64_t record) const;

  // "/data/train-00000-of-00004.tfrecord, record 3 at offset 812".
  [[nodiscard]] std::string locate(std::size_t shard, std::size_t record) const;

 private:
  [[nodiscard]] Result<void> add_shard(const std::string& path);
  [[nodiscard]] Result<void> check_unique() const;
  [[nodiscard]] Result<void> list_samples(std::size_t shard);
  // The payload of a record, checksums checked.
  [[nodiscard]] Result<std::string_view> payload(std::size_t shard, std::size_t record) const;

  std::vector<Shard> shards_;
  std::vector<SampleEntry> samples_;
};

}  // namespace hvd::petrv2
