#include "training/formats/tfrecord_index.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/lines.h"
#include "base/plural.h"
#include "training/formats/atomic_file.h"
#include "training/formats/mapped_file.h"
#include "training/formats/tfrecord.h"

namespace hvd {
namespace {

std::optional<std::uint64_t> take_number(std::string_view* line) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), value);
  if (error != std::errc()) return std::nullopt;
  line->remove_prefix(static_cast<std::size_t>(end - line->data()));
  return value;
}

std::optional<TfrecordIndexEntry> parse_line(std::string_view line) {
  const auto offset = take_number(&line);
  if (!offset || !line.starts_with(" ")) return std::nullopt;
  line.remove_prefix(1);
  const auto size = take_number(&line);
  if (!size || !(line.empty() || line == "\r")) return std::nullopt;
  return TfrecordIndexEntry{*offset, *size};
}

}  // namespace

std::string tfrecord_index_path(const std::string& tfrecord_path) {
  constexpr std::string_view kSuffix = ".tfrecord";
  std::string stem = tfrecord_path;
  if (stem.ends_with(kSuffix)) stem.resize(stem.size() - kSuffix.size());
  return stem + ".index";
}

Result<TfrecordIndex> read_tfrecord_index(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  TfrecordIndex index;
  for (std::string_view rest = file->bytes(); !rest.empty();) {
    const auto entry = parse_line(take_line(rest));
    if (!entry) {
      return make_error(
          "{}: line {} is not \"OFFSET SIZE\" in decimal: rebuild the index from its records", path,
          index.size() + 1);
    }
    index.push_back(*entry);
  }
  return index;
}

Result<void> write_tfrecord_index(const std::string& path, const TfrecordIndex& index) {
  std::string text;
  for (const auto& [offset, size] : index) text += fmt::format("{} {}\n", offset, size);
  auto file = AtomicFile::create(path, text.size());
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->write(text); !written) return written;
  return file->commit();
}

Result<TfrecordIndex> build_tfrecord_index(const std::string& tfrecord_path) {
  auto reader = TfrecordReader::open(tfrecord_path);
  if (!reader) return tl::unexpected(reader.error());
  TfrecordIndex index;
  while (true) {
    const std::uint64_t start = reader->offset();
    const auto payload = reader->next();
    if (!payload) return tl::unexpected(payload.error());
    if (!*payload) return index;
    index.push_back({start, reader->offset() - start});
  }
}

Result<void> check_tfrecord_index(const TfrecordIndex& index, const TfrecordReader& reader) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto& [offset, size] = index[i];
    if (offset != end || size < kTfrecordOverhead) {
      return make_error(
          "{}: its index is wrong at record {} (offset {}, size {}; the record before ends at {}): "
          "rebuild the index",
          reader.path(), i, offset, size, end);
    }
    if (size > reader.file_size() - end) {
      return make_error(
          "{}: record {} at offset {} is cut: by its index it has {} bytes, but the file ends at "
          "offset {}, so copy it again",
          reader.path(), i, offset, size, reader.file_size());
    }
    end += size;
  }
  if (end == reader.file_size()) return {};
  return make_error(
      "{}: its index ends after {} at offset {}, but the file has {} bytes: rebuild the "
      "index",
      reader.path(), counted(index.size(), "record"), end, reader.file_size());
}

}  // namespace hvd
