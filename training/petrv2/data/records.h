// What a data set's TFRecord files hold, and how it is written: "step" records (the six images of
// one time) and "sample" records (the labels of a lidar keyframe and which steps it looks at), both
// as tf.train.Example with sorted keys. Encoding and decoding are pure functions, any thread.
//
// RecordSetWriter writes a split as shards NAME-00000-of-00004.tfrecord with a text index beside
// each (NAME-00000-of-00004.index: "offset size" of every record, size with framing). All steps of
// a scene and its samples go to one shard. The index comes last, so a set cut off while being
// written is refused by its reader.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "training/petrv2/data/sample.h"

namespace hvd::petrv2 {

inline constexpr std::int64_t kRecordFormatVersion = 1;

// Six images taken at about one time. All six are there: a step that lacks a camera is not written.
struct StepRecord {
  std::string scene;
  std::int64_t step_id = 0;
  bool is_key = false;
  std::array<std::string, kNumCameras> jpeg;
  std::array<std::int64_t, kNumCameras> timestamp_us{};
  std::array<std::int64_t, kNumCameras> height{};  // px
  std::array<std::int64_t, kNumCameras> width{};
  std::array<Matrix3, kNumCameras> intrinsic{};   // px
  std::array<Matrix4, kNumCameras> cam2global{};  // T[G<-E(t)] T[E<-C], m
};

struct AnnotatedBox {
  Box box;  // lidar frame; label -1: another category; NaN velocity: unknown
  std::int64_t num_lidar_pts = 0;
  std::int64_t num_radar_pts = 0;
  std::string instance;  // token; may be empty
};

struct SampleRecord {
  std::string sample_token;
  std::string scene;
  std::int64_t timestamp_us = 0;  // of the lidar keyframe
  Matrix4 lidar2global = kIdentity4;
  Matrix4 lidar2ego = kIdentity4;
  Matrix4 ego2global = kIdentity4;
  std::int64_t cur_step = 0;             // record number in the shard, as add_step() gave it
  std::vector<std::int64_t> prev_steps;  // the same, nearest in time first, at most 30
  std::vector<AnnotatedBox> boxes;       // fp32 in the file
  std::string map_bits;                  // 3 x 200 x 200 bits, or empty
};

// The bytes of a tf.train.Example; equal records give equal bytes.
[[nodiscard]] std::string encode_step(const StepRecord& step);
[[nodiscard]] std::string encode_sample(const SampleRecord& sample);

// What is wrong, in words that fit behind "FILE, record 3 at offset 812: ".
[[nodiscard]] Result<StepRecord> decode_step(std::string_view payload);
[[nodiscard]] Result<SampleRecord> decode_sample(std::string_view payload);

enum class RecordKind { kStep, kSample, kUnknown };

// Tells the kind from the first bytes of a payload (256 are enough for records written here); the
// keys of a record from elsewhere may come in another order: kUnknown, then ask the whole payload.
[[nodiscard]] RecordKind peek_kind(std::string_view prefix);

// NAME-00002-of-00004 + suffix.
[[nodiscard]] std::string shard_file_name(std::string_view split, std::size_t shard,
                                          std::size_t num_shards, std::string_view suffix);

// Writes one split. A scene's steps come first, then the samples that name them; a scene is over
// when the next one begins. One thread. close() must have succeeded for the set to be readable.
class RecordSetWriter {
 public:
  // The folder is made if need be; it must hold no shard of this split yet.
  static Result<RecordSetWriter> create(const std::string& folder, const std::string& split,
                                        std::size_t num_shards);
  RecordSetWriter(RecordSetWriter&&) noexcept;
  RecordSetWriter& operator=(RecordSetWriter&&) noexcept;
  ~RecordSetWriter();

  // The record number in the scene's shard: for cur_step and prev_steps of its samples.
  Result<std::int64_t> add_step(const StepRecord& step);
  Result<void> add_sample(const SampleRecord& sample);

  // On disk (fsync) with the indexes. Without it the destructor leaves shards without index.
  Result<void> close();

 private:
  struct State;
  explicit RecordSetWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hvd::petrv2
