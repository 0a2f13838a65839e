#include "training/petrv2/data/record_set.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "training/formats/mapped_file.h"
#include "training/petrv2/data/box_filter.h"
#include "training/petrv2/data/example_fields.h"

namespace hvd::petrv2 {
namespace {

constexpr std::string_view kRemedy = "write the records again, or fetch a whole copy of the file";
constexpr std::size_t kPayloadStart = 12;  // bytes of a record before its payload
constexpr std::size_t kPeekedBytes = 256;

struct ShardName {
  std::string split;
  std::size_t shard = 0;
  std::size_t num_shards = 0;
};

std::optional<ShardName> parse_shard_name(const std::string& file) {
  static const std::regex kPattern(R"((.+)-(\d{5})-of-(\d{5})\.tfrecord)");
  std::smatch match;
  if (!std::regex_match(file, match, kPattern)) return std::nullopt;
  return ShardName{match[1], std::stoul(match[2]), std::stoul(match[3])};
}

// The shards in a folder, of all splits.
Result<std::vector<ShardName>> list_shards(const std::string& folder) {
  std::error_code failure;
  std::filesystem::directory_iterator entries(folder, failure);
  std::vector<ShardName> names;
  while (!failure && entries != std::filesystem::directory_iterator()) {
    if (auto name = parse_shard_name(entries->path().filename())) names.push_back(std::move(*name));
    entries.increment(failure);
  }
  if (failure) return make_error("read folder {}: {}", folder, failure.message());
  return names;
}

std::string joined(const std::vector<ShardName>& names) {
  std::set<std::string> splits;
  for (const ShardName& name : names) splits.insert(name.split);
  std::string text;
  for (const std::string& split : splits) text += (text.empty() ? "" : ", ") + split;
  return text.empty() ? "none" : text;
}

// How many shards the split has; all of them must be there, and of one set.
Result<std::size_t> count_shards(const std::string& folder, const std::string& split,
                                 const std::vector<ShardName>& names) {
  std::set<std::size_t> found;
  std::optional<std::size_t> num_shards;
  for (const ShardName& name : names) {
    if (name.split != split) continue;
    if (num_shards.value_or(name.num_shards) != name.num_shards) {
      return make_error("{} holds shards of two sets \"{}\", of {} and of {}; remove one of them",
                        folder, split, *num_shards, name.num_shards);
    }
    num_shards = name.num_shards;
    found.insert(name.shard);
  }
  if (!num_shards) {
    return make_error("{} holds no {}; splits there: {}", folder,
                      shard_file_name(split, 0, 1, ".tfrecord"), joined(names));
  }
  for (std::size_t shard = 0; shard < *num_shards; ++shard) {
    if (found.contains(shard)) continue;
    return make_error("{}/{} is missing; {}", folder,
                      shard_file_name(split, shard, *num_shards, ".tfrecord"), kRemedy);
  }
  return *num_shards;
}

// The first bytes of a payload, not checked: enough to tell a step, whose images are not to be read
// now, from a sample.
std::string_view peek(const MappedFile& file, const TfrecordIndexEntry& entry) {
  const std::size_t size = std::min<std::size_t>(entry.size - kTfrecordOverhead, kPeekedBytes);
  return file.bytes().substr(entry.offset + kPayloadStart, size);
}

bool is_sample(std::string_view payload) {
  const auto fields = ExampleFields::parse(payload);
  return !fields || !fields->has("image/encoded");  // what is neither is then decoded, and named
}

}  // namespace

std::string shard_file_name(std::string_view split, std::size_t shard, std::size_t num_shards,
                            std::string_view suffix) {
  return fmt::format("{}-{:05}-of-{:05}{}", split, shard, num_shards, suffix);
}

Result<std::vector<std::string>> list_splits(const std::string& folder) {
  return list_shards(folder).map([](const std::vector<ShardName>& names) {
    std::set<std::string> splits;
    for (const ShardName& name : names) splits.insert(name.split);
    return std::vector<std::string>(splits.begin(), splits.end());
  });
}

Result<RecordSet> RecordSet::open(const std::string& folder, const std::string& split) {
  const auto names = list_shards(folder);
  if (!names) return tl::unexpected(names.error());
  const auto num_shards = count_shards(folder, split, *names);
  if (!num_shards) return tl::unexpected(num_shards.error());
  RecordSet set;
  for (std::size_t shard = 0; shard < *num_shards; ++shard) {
    const std::string name = shard_file_name(split, shard, *num_shards, ".tfrecord");
    auto added = set.add_shard((std::filesystem::path(folder) / name).string());
    if (!added) return tl::unexpected(std::move(added).error());
  }
  std::sort(set.samples_.begin(), set.samples_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.timestamp_us, a.token) < std::tie(b.timestamp_us, b.token);
  });
  if (auto unique = set.check_unique(); !unique) return tl::unexpected(unique.error());
  return set;
}

// A shard that was copied over another would otherwise be trained on twice.
Result<void> RecordSet::check_unique() const {
  std::unordered_map<std::string_view, const SampleEntry*> seen;
  for (const SampleEntry& sample : samples_) {
    const auto [other, is_new] = seen.try_emplace(sample.token, &sample);
    if (is_new) continue;
    return make_error("sample {} is there twice, in {} and in {}; convert the data set again",
                      sample.token, locate(other->second->shard, other->second->record),
                      locate(sample.shard, sample.record));
  }
  return {};
}

Result<void> RecordSet::add_shard(const std::string& path) {
  auto index = read_tfrecord_index(tfrecord_index_path(path));
  if (!index) return tl::unexpected(std::move(index).error());
  auto reader = TfrecordReader::open(path);
  if (!reader) return tl::unexpected(std::move(reader).error());
  if (auto fits = check_tfrecord_index(*index, *reader); !fits) return fits;
  shards_.push_back({std::move(*reader), std::move(*index), 0});
  return list_samples(shards_.size() - 1);
}

Result<void> RecordSet::list_samples(std::size_t shard) {
  const auto file = MappedFile::open(shards_[shard].reader.path());
  if (!file) return tl::unexpected(file.error());
  for (std::size_t record = 0; record < shards_[shard].index.size(); ++record) {
    const RecordKind kind = peek_kind(peek(*file, shards_[shard].index[record]));
    if (kind == RecordKind::kStep) continue;
    const auto bytes = payload(shard, record);
    if (!bytes) return tl::unexpected(bytes.error());
    if (kind == RecordKind::kUnknown && !is_sample(*bytes)) continue;
    const auto sample = decode_sample(*bytes);
    if (!sample)
      return make_error("{}: {}; {}", locate(shard, record), sample.error().message, kRemedy);
    samples_.push_back(
        {sample->sample_token, sample->timestamp_us, shard, record, count_training_boxes(*sample)});
    ++shards_[shard].num_samples;
  }
  return {};
}

std::string RecordSet::locate(std::size_t shard, std::size_t record) const {
  return fmt::format("{}, record {} at offset {}", shards_[shard].reader.path(), record,
                     shards_[shard].index[record].offset);
}

Result<std::string_view> RecordSet::payload(std::size_t shard, std::size_t record) const {
  return shards_[shard].reader.read_at(shards_[shard].index[record].offset, record);
}

Result<SampleRecord> RecordSet::read_sample(std::size_t index) const {
  const SampleEntry& entry = samples_[index];
  const auto bytes = payload(entry.shard, entry.record);
  if (!bytes) return tl::unexpected(bytes.error());
  auto sample = decode_sample(*bytes);
  if (!sample) {
    return make_error("{}: {}; {}", locate(entry.shard, entry.record), sample.error().message,
                      kRemedy);
  }
  return sample;
}

Result<StepRecord> RecordSet::read_step(std::size_t shard, std::int64_t record) const {
  const std::size_t num_records = shards_[shard].index.size();
  if (record < 0 || static_cast<std::size_t>(record) >= num_records) {
    return make_error("{}: a sample names record {} as a step, but the file has {} of them; {}",
                      shards_[shard].reader.path(), record, num_records, kRemedy);
  }
  const auto number = static_cast<std::size_t>(record);
  const auto bytes = payload(shard, number);
  if (!bytes) return tl::unexpected(bytes.error());
  auto step = decode_step(*bytes);
  if (!step) return make_error("{}: {}; {}", locate(shard, number), step.error().message, kRemedy);
  return step;
}

}  // namespace hvd::petrv2
