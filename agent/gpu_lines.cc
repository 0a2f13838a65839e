#include "agent/gpu_lines.h"

#include <array>
#include <utility>

#include "base/blanks.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kNumFields = 4;
constexpr std::uint64_t kMostPercent = 100;
constexpr std::uint64_t kMostMib = std::uint64_t{1} << 32;  // far above any GPU's
constexpr std::size_t kMaxWords = 200;

bool split_fields(std::string_view line, std::array<std::string_view, kNumFields>& fields) {
  for (std::size_t i = 0; i < kNumFields; ++i) {
    const std::size_t end = line.find(',');
    const bool is_last = i + 1 == kNumFields;
    if (is_last != (end == std::string_view::npos)) return false;
    fields[i] = strip_blanks(line.substr(0, end));
    if (!is_last) line.remove_prefix(end + 1);
  }
  return true;
}

// A word in brackets stands for a number that is not known.
bool is_unknown(std::string_view field) {
  return field == "N/A" || (field.starts_with('[') && field.ends_with(']'));
}

}  // namespace

std::optional<v1::GpuSample> parse_gpu_line(std::string_view line) {
  std::array<std::string_view, kNumFields> fields;
  if (!split_fields(line, fields)) return std::nullopt;
  const auto index = parse_number<std::uint32_t>(fields[0]);
  if (!index) return std::nullopt;
  std::array<std::optional<std::uint64_t>, kNumFields> numbers;
  for (std::size_t i = 1; i < kNumFields; ++i) {
    numbers[i] = parse_number<std::uint64_t>(fields[i]);
    if (!numbers[i] && !is_unknown(fields[i])) return std::nullopt;
  }
  v1::GpuSample sample;
  sample.set_index(*index);
  if (numbers[1] && *numbers[1] <= kMostPercent) {
    sample.set_has_utilization(true);
    sample.set_utilization(static_cast<std::uint32_t>(*numbers[1]));
  }
  if (numbers[2] && numbers[3] && *numbers[2] <= *numbers[3] && *numbers[3] <= kMostMib) {
    sample.set_has_memory(true);
    sample.set_used_mib(*numbers[2]);
    sample.set_total_mib(*numbers[3]);
  }
  return sample;
}

bool GpuLines::add(std::string_view bytes) {
  bool has_sample = false;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (partial_.size() <= kMaxLine) partial_ += bytes.substr(0, end);
    if (end == std::string_view::npos) break;
    has_sample |= take_line(std::exchange(partial_, {}));
    bytes.remove_prefix(end + 1);
  }
  return has_sample;
}

bool GpuLines::take_line(std::string_view line) {
  if (line.size() > kMaxLine) return false;
  auto sample = parse_gpu_line(line);
  if (!sample) {
    const std::string_view words = strip_blanks(line);
    if (!words.empty()) last_words_ = words.substr(0, kMaxWords);
    return false;
  }
  fresh_[sample->index()] = std::move(*sample);
  return true;
}

v1::GpuSummary GpuLines::take() {
  v1::GpuSummary summary;
  for (auto& [index, sample] : fresh_) *summary.add_gpus() = std::move(sample);
  fresh_.clear();
  return summary;
}

}  // namespace hvd
