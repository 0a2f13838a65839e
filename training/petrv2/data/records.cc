#include "training/petrv2/data/records.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <optional>
#include <span>

#include "training/petrv2/data/example_fields.h"

namespace hvd::petrv2 {
namespace {

// All numbers of a list of small arrays, one after the other.
template <typename T, typename Array>
std::vector<T> flattened(std::span<const Array> arrays) {
  std::vector<T> flat;
  for (const Array& array : arrays) {
    for (const auto value : array) flat.push_back(static_cast<T>(value));
  }
  return flat;
}

// One value of each annotated box.
template <typename T, typename Get>
std::vector<T> column(const std::vector<AnnotatedBox>& boxes, Get get) {
  std::vector<T> values;
  values.reserve(boxes.size());
  for (const AnnotatedBox& box : boxes) values.push_back(static_cast<T>(get(box)));
  return values;
}

// `N` values of each annotated box, one after the other.
template <std::size_t N>
std::vector<float> columns(const std::vector<AnnotatedBox>& boxes,
                           std::array<double, N> Box::*member) {
  std::vector<float> values;
  values.reserve(boxes.size() * N);
  for (const AnnotatedBox& annotated : boxes) {
    for (const double value : annotated.box.*member) values.push_back(static_cast<float>(value));
  }
  return values;
}

void add_boxes(ExampleBuilder& example, const std::vector<AnnotatedBox>& boxes) {
  example.add("gt/center", columns(boxes, &Box::center));
  example.add("gt/size", columns(boxes, &Box::size));
  example.add("gt/velocity", columns(boxes, &Box::velocity));
  example.add("gt/heading", column<float>(boxes, [](const auto& b) { return b.box.heading; }));
  example.add("gt/label", column<std::int64_t>(boxes, [](const auto& b) { return b.box.label; }));
  example.add("gt/num_lidar_pts",
              column<std::int64_t>(boxes, [](const auto& b) { return b.num_lidar_pts; }));
  example.add("gt/num_radar_pts",
              column<std::int64_t>(boxes, [](const auto& b) { return b.num_radar_pts; }));
  example.add("gt/instance", column<std::string>(boxes, [](const auto& b) { return b.instance; }));
}

// The key of a map entry that starts here, and its value skipped; nothing at the end of the prefix.
std::optional<std::string> next_key(google::protobuf::io::CodedInputStream& in) {
  constexpr std::uint32_t kBytesField1 = 0x0a;
  constexpr int kLongestKey = 64;
  std::uint32_t entry_size = 0;
  std::uint32_t key_size = 0;
  std::string key;
  if (in.ReadTag() != kBytesField1 || !in.ReadVarint32(&entry_size)) return std::nullopt;
  const int entry_start = in.CurrentPosition();
  if (in.ReadTag() != kBytesField1 || !in.ReadVarint32(&key_size) || key_size > kLongestKey ||
      !in.ReadString(&key, static_cast<int>(key_size))) {
    return std::nullopt;
  }
  // A value that reaches past the prefix ends the walk at the next tag.
  in.Skip(static_cast<int>(entry_size) - (in.CurrentPosition() - entry_start));
  return key;
}

}  // namespace

std::string encode_step(const StepRecord& step) {
  ExampleBuilder example;
  example.add_int64("format_version", kRecordFormatVersion);
  example.add_bytes("scene", step.scene);
  example.add_int64("step_id", step.step_id);
  example.add_int64("is_key", step.is_key ? 1 : 0);
  example.add("image/encoded", std::span<const std::string>(step.jpeg));
  example.add("image/timestamp_us", std::span<const std::int64_t>(step.timestamp_us));
  example.add("image/height", std::span<const std::int64_t>(step.height));
  example.add("image/width", std::span<const std::int64_t>(step.width));
  example.add_doubles("image/intrinsic",
                      flattened<double>(std::span<const Matrix3>(step.intrinsic)));
  example.add_doubles("image/cam2global",
                      flattened<double>(std::span<const Matrix4>(step.cam2global)));
  return example.serialize();
}

std::string encode_sample(const SampleRecord& sample) {
  ExampleBuilder example;
  example.add_bytes("sample_token", sample.sample_token);
  example.add_bytes("scene", sample.scene);
  example.add_int64("timestamp_us", sample.timestamp_us);
  example.add_doubles("lidar2global", sample.lidar2global);
  example.add_doubles("lidar2ego", sample.lidar2ego);
  example.add_doubles("ego2global", sample.ego2global);
  example.add_int64("cur_step", sample.cur_step);
  example.add("prev_steps", std::span<const std::int64_t>(sample.prev_steps));
  add_boxes(example, sample.boxes);
  if (!sample.map_bits.empty()) example.add_bytes("map/bits", sample.map_bits);
  return example.serialize();
}

RecordKind peek_kind(std::string_view prefix) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(prefix.data()),
                                            static_cast<int>(prefix.size()));
  std::uint32_t features_size = 0;
  if (in.ReadTag() != 0x0a || !in.ReadVarint32(&features_size)) return RecordKind::kUnknown;
  while (const std::optional<std::string> key = next_key(in)) {
    if (*key == "sample_token" || *key == "cur_step") return RecordKind::kSample;
    if (*key == "step_id" || key->starts_with("image/")) return RecordKind::kStep;
  }
  return RecordKind::kUnknown;
}

}  // namespace hvd::petrv2
