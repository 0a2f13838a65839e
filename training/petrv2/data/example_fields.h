// Typed access to the features of a tf.train.Example, for the codecs of this folder only (it brings
// the generated messages). ExampleFields lives as long as the values that it hands out as views.
// One thread at a time each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "training/petrv2/data/example.pb.h"

namespace hvd::petrv2 {

// Puts an example together. Keys come out sorted, so equal features give equal bytes.
class ExampleBuilder {
 public:
  void add(const std::string& key, std::span<const std::int64_t> values);
  void add(const std::string& key, std::span<const float> values);
  void add(const std::string& key, std::span<const std::string> values);
  void add_int64(const std::string& key, std::int64_t value) { add(key, std::span(&value, 1)); }
  void add_bytes(const std::string& key, const std::string& value) {
    add(key, std::span(&value, 1));
  }
  // One byte string of little-endian fp64.
  void add_doubles(const std::string& key, std::span<const double> values);

  [[nodiscard]] std::string serialize() const;

 private:
  hvdrun::example::Example example_;
};

// Reads one. A key that is absent, or a feature with no list set, counts as an empty list. Each
// error names the key. `count`: how many values there must be; nullopt: any number.
class ExampleFields {
 public:
  static Result<ExampleFields> parse(std::string_view payload);

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> int64s(const std::string& key,
                                                         std::optional<std::size_t> count) const;
  [[nodiscard]] Result<std::vector<float>> floats(const std::string& key,
                                                  std::optional<std::size_t> count) const;
  [[nodiscard]] Result<std::vector<std::string>> strings(const std::string& key,
                                                         std::optional<std::size_t> count) const;
  // `count` finite fp64 from one byte string, or, less exact, from a list of floats.
  [[nodiscard]] Result<std::vector<double>> doubles(const std::string& key,
                                                    std::size_t count) const;
  [[nodiscard]] Result<std::int64_t> int64(const std::string& key) const;
  [[nodiscard]] Result<std::string> string(const std::string& key) const;

 private:
  [[nodiscard]] const hvdrun::example::Feature& feature(const std::string& key) const;

  hvdrun::example::Example example_;
};

}  // namespace hvd::petrv2
