#include "training/petrv2/data/example_fields.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/plural.h"

namespace hvd::petrv2 {
namespace {

using hvdrun::example::Feature;

static_assert(std::endian::native == std::endian::little, "matrices are stored little-endian");

Result<void> check_count(const std::string& key, std::size_t found,
                         std::optional<std::size_t> count) {
  if (count && found != *count) {
    return make_error("key {} has {}, not {}", key, counted(found, "value"), *count);
  }
  return {};
}

// The list of a feature as a vector; an empty one if another kind of list is set and empty.
template <typename T, typename List>
Result<std::vector<T>> values_of(const std::string& key, const List& list, bool is_other_kind,
                                 std::string_view kind, std::optional<std::size_t> count) {
  if (is_other_kind) return make_error("key {} is not a list of {}", key, kind);
  if (const auto fits = check_count(key, static_cast<std::size_t>(list.size()), count); !fits) {
    return tl::unexpected(fits.error());
  }
  return std::vector<T>(list.begin(), list.end());
}

bool is_other_kind(const Feature& feature, Feature::KindCase kind) {
  return feature.kind_case() != kind && feature.kind_case() != Feature::KIND_NOT_SET;
}

Result<std::vector<double>> unpack_doubles(const std::string& key, const std::string& bytes,
                                           std::size_t count) {
  if (bytes.size() != count * sizeof(double)) {
    return make_error("key {} has {} bytes, not those of {} fp64", key, bytes.size(), count);
  }
  std::vector<double> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

void ExampleBuilder::add(const std::string& key, std::span<const std::int64_t> values) {
  auto& feature = (*example_.mutable_features()->mutable_feature())[key];
  feature.mutable_int64_list()->mutable_value()->Add(values.begin(), values.end());
}

void ExampleBuilder::add(const std::string& key, std::span<const float> values) {
  auto& feature = (*example_.mutable_features()->mutable_feature())[key];
  feature.mutable_float_list()->mutable_value()->Add(values.begin(), values.end());
}

void ExampleBuilder::add(const std::string& key, std::span<const std::string> values) {
  auto& feature = (*example_.mutable_features()->mutable_feature())[key];
  feature.mutable_bytes_list()->mutable_value()->Add(values.begin(), values.end());
}

void ExampleBuilder::add_doubles(const std::string& key, std::span<const double> values) {
  std::string bytes(values.size_bytes(), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  add_bytes(key, bytes);
}

std::string ExampleBuilder::serialize() const {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // map entries sorted by key
    example_.SerializeToCodedStream(&coded);
  }
  return bytes;
}

Result<ExampleFields> ExampleFields::parse(std::string_view payload) {
  ExampleFields fields;
  if (payload.size() > (std::size_t{1} << 31U) - 1 ||
      !fields.example_.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return make_error("the payload is no tf.train.Example");
  }
  return fields;
}

const Feature& ExampleFields::feature(const std::string& key) const {
  const auto& features = example_.features().feature();
  const auto found = features.find(key);
  return found == features.end() ? Feature::default_instance() : found->second;
}

bool ExampleFields::has(const std::string& key) const {
  return example_.features().feature().contains(key);
}

Result<std::vector<std::int64_t>> ExampleFields::int64s(const std::string& key,
                                                        std::optional<std::size_t> count) const {
  const Feature& found = feature(key);
  return values_of<std::int64_t>(key, found.int64_list().value(),
                                 is_other_kind(found, Feature::kInt64List), "int64", count);
}

Result<std::vector<float>> ExampleFields::floats(const std::string& key,
                                                 std::optional<std::size_t> count) const {
  const Feature& found = feature(key);
  return values_of<float>(key, found.float_list().value(),
                          is_other_kind(found, Feature::kFloatList), "float", count);
}

Result<std::vector<std::string>> ExampleFields::strings(const std::string& key,
                                                        std::optional<std::size_t> count) const {
  const Feature& found = feature(key);
  return values_of<std::string>(key, found.bytes_list().value(),
                                is_other_kind(found, Feature::kBytesList), "bytes", count);
}

Result<std::vector<double>> ExampleFields::doubles(const std::string& key,
                                                   std::size_t count) const {
  Result<std::vector<double>> values;
  if (feature(key).kind_case() == Feature::kFloatList) {
    values = floats(key, count).map([](const std::vector<float>& list) {
      return std::vector<double>(list.begin(), list.end());
    });
  } else {
    values = string(key).and_then(
        [&](const std::string& bytes) { return unpack_doubles(key, bytes, count); });
  }
  if (values &&
      !std::all_of(values->begin(), values->end(), [](double v) { return std::isfinite(v); })) {
    return make_error("key {} holds a value that is not finite", key);
  }
  return values;
}

Result<std::int64_t> ExampleFields::int64(const std::string& key) const {
  return int64s(key, 1).map([](const std::vector<std::int64_t>& list) { return list.front(); });
}

Result<std::string> ExampleFields::string(const std::string& key) const {
  return strings(key, 1).map([](const std::vector<std::string>& list) { return list.front(); });
}

}  // namespace hvd::petrv2
