#include <algorithm>
#include <cmath>
#include <utility>

#include "training/petrv2/data/example_fields.h"
#include "training/petrv2/data/records.h"

namespace hvd::petrv2 {
namespace {

// Takes fields one after the other; after the first error the rest is not looked at.
class FieldTaker {
 public:
  explicit FieldTaker(const ExampleFields& fields) : fields_(fields) {}

  [[nodiscard]] const Result<void>& outcome() const { return outcome_; }
  // Whether all is well so far; `value` is moved into `target` then.
  template <typename T, typename Target>
  bool take(Result<T> value, Target& target) {
    if (!outcome_) return false;
    if (!value) {
      outcome_ = tl::unexpected(std::move(value).error());
      return false;
    }
    target = std::move(*value);
    return true;
  }

  template <typename T, std::size_t N>
  void take_array(Result<std::vector<T>> value, std::array<T, N>& target) {
    std::vector<T> list;
    if (take(std::move(value), list)) std::copy_n(list.begin(), N, target.begin());
  }

  template <std::size_t N>
  void take_matrix(const std::string& key, std::array<double, N>& target) {
    take_array(fields_.doubles(key, N), target);
  }

  template <std::size_t N>
  void take_matrices(const std::string& key,
                     std::array<std::array<double, N>, kNumCameras>& target) {
    std::vector<double> list;
    if (!take(fields_.doubles(key, N * kNumCameras), list)) return;
    for (std::size_t i = 0; i < list.size(); ++i) target[i / N][i % N] = list[i];
  }

  void require(bool is_true, const char* otherwise) {
    if (outcome_ && !is_true) outcome_ = make_error("{}", otherwise);
  }

 private:
  const ExampleFields& fields_;
  Result<void> outcome_;
};

// The format version of a record; one without the key is of version 1.
Result<std::int64_t> format_version(const ExampleFields& fields) {
  return fields.has("format_version") ? fields.int64("format_version") : 1;
}

void check_version(FieldTaker& taker, const ExampleFields& fields) {
  std::int64_t version = 0;
  taker.take(format_version(fields), version);
  taker.require(version == kRecordFormatVersion,
                "its format_version is not 1, the only one this program reads");
}

struct BoxColumns {
  std::vector<float> center, size, velocity, heading;
  std::vector<std::int64_t> label, num_lidar_pts, num_radar_pts;
  std::vector<std::string> instance;
};

BoxColumns take_box_columns(FieldTaker& taker, const ExampleFields& fields) {
  BoxColumns columns;
  taker.take(fields.int64s("gt/label", std::nullopt), columns.label);
  const std::size_t n = columns.label.size();
  taker.take(fields.floats("gt/center", 3 * n), columns.center);
  taker.take(fields.floats("gt/size", 3 * n), columns.size);
  taker.take(fields.floats("gt/velocity", 2 * n), columns.velocity);
  taker.take(fields.floats("gt/heading", n), columns.heading);
  taker.take(fields.int64s("gt/num_lidar_pts", n), columns.num_lidar_pts);
  taker.take(fields.int64s("gt/num_radar_pts", n), columns.num_radar_pts);
  const bool has_instances = fields.has("gt/instance");
  taker.take(fields.strings("gt/instance", has_instances ? n : 0), columns.instance);
  columns.instance.resize(n);
  return columns;
}

AnnotatedBox box_of(const BoxColumns& columns, std::size_t i) {
  AnnotatedBox annotated;
  annotated.box.center = {columns.center[3 * i], columns.center[3 * i + 1],
                          columns.center[3 * i + 2]};
  annotated.box.size = {columns.size[3 * i], columns.size[3 * i + 1], columns.size[3 * i + 2]};
  annotated.box.heading = columns.heading[i];
  annotated.box.velocity = {columns.velocity[2 * i], columns.velocity[2 * i + 1]};
  annotated.box.label = static_cast<int>(columns.label[i]);
  annotated.num_lidar_pts = columns.num_lidar_pts[i];
  annotated.num_radar_pts = columns.num_radar_pts[i];
  annotated.instance = columns.instance[i];
  return annotated;
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

void take_boxes(FieldTaker& taker, const ExampleFields& fields, std::vector<AnnotatedBox>& boxes) {
  const BoxColumns columns = take_box_columns(taker, fields);
  taker.require(all_finite(columns.center) && all_finite(columns.heading),
                "gt/center or gt/heading holds a value that is not finite");
  taker.require(all_finite(columns.size) && std::all_of(columns.size.begin(), columns.size.end(),
                                                        [](float v) { return v > 0; }),
                "gt/size holds a length that is not above 0");
  taker.require(std::all_of(columns.label.begin(), columns.label.end(),
                            [](std::int64_t label) {
                              return label >= -1 &&
                                     label < static_cast<std::int64_t>(kClassNames.size());
                            }),
                "gt/label holds a number outside -1 to 9");
  if (!taker.outcome()) return;
  for (std::size_t i = 0; i < columns.label.size(); ++i) boxes.push_back(box_of(columns, i));
}

bool all_positive(const std::array<std::int64_t, kNumCameras>& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v > 0; });
}

}  // namespace

Result<StepRecord> decode_step(std::string_view payload) {
  const Result<ExampleFields> fields = ExampleFields::parse(payload);
  if (!fields) return tl::unexpected(fields.error());
  FieldTaker taker(*fields);
  StepRecord step;
  check_version(taker, *fields);
  taker.take(fields->string("scene"), step.scene);
  taker.take(fields->int64("step_id"), step.step_id);
  taker.take(fields->int64("is_key"), step.is_key);
  taker.take_array(fields->strings("image/encoded", kNumCameras), step.jpeg);
  taker.take_array(fields->int64s("image/timestamp_us", kNumCameras), step.timestamp_us);
  taker.take_array(fields->int64s("image/height", kNumCameras), step.height);
  taker.take_array(fields->int64s("image/width", kNumCameras), step.width);
  taker.require(all_positive(step.height) && all_positive(step.width),
                "image/height or image/width holds a number that is not above 0");
  taker.take_matrices("image/intrinsic", step.intrinsic);
  taker.take_matrices("image/cam2global", step.cam2global);
  if (!taker.outcome()) return tl::unexpected(taker.outcome().error());
  return step;
}

Result<SampleRecord> decode_sample(std::string_view payload) {
  const Result<ExampleFields> fields = ExampleFields::parse(payload);
  if (!fields) return tl::unexpected(fields.error());
  FieldTaker taker(*fields);
  SampleRecord sample;
  check_version(taker, *fields);
  taker.take(fields->string("sample_token"), sample.sample_token);
  taker.take(fields->string("scene"), sample.scene);
  taker.take(fields->int64("timestamp_us"), sample.timestamp_us);
  taker.take_matrix("lidar2global", sample.lidar2global);
  taker.take_matrix("lidar2ego", sample.lidar2ego);
  taker.take_matrix("ego2global", sample.ego2global);
  taker.take(fields->int64("cur_step"), sample.cur_step);
  taker.take(fields->int64s("prev_steps", std::nullopt), sample.prev_steps);
  take_boxes(taker, *fields, sample.boxes);
  if (fields->has("map/bits")) taker.take(fields->string("map/bits"), sample.map_bits);
  if (!taker.outcome()) return tl::unexpected(taker.outcome().error());
  return sample;
}

}  // namespace hvd::petrv2
