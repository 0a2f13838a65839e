#include "training/formats/tfrecord.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "training/formats/crc32c.h"
#include "training/formats/disk_write.h"

namespace hvd {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths and checksums are copied as is");

constexpr std::uint64_t kHeader = 12;
constexpr std::uint64_t kFooter = 4;
constexpr std::size_t kBuffer = std::size_t{1} << 20;

template <typename T>
T load(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
std::string stored(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct ForeignFormat {
  std::string_view start;
  std::string_view sentence;
};

constexpr std::string_view kDecompress =
    "only uncompressed TFRecord files are read, so decompress it first";

// What people hand over in place of records, by its first bytes.
constexpr auto kForeign = std::to_array<ForeignFormat>({
    {"\x1f\x8b", "looks like gzip"},
    {"\x28\xb5\x2f\xfd", "looks like zstd"},
    {"\x78\x01", "looks like zlib"},
    {"\x78\x5e", "looks like zlib"},
    {"\x78\x9c", "looks like zlib"},
    {"\x78\xda", "looks like zlib"},
});

std::optional<std::string> foreign_content(std::string_view file) {
  for (const ForeignFormat& format : kForeign) {
    if (file.starts_with(format.start)) {
      return fmt::format("{}: {}", format.sentence, kDecompress);
    }
  }
  if (file.starts_with("version https://git-lfs")) {
    return "looks like a Git LFS pointer: fetch the content with git lfs pull";
  }
  while (!file.empty() && std::isspace(static_cast<unsigned char>(file.front())) != 0) {
    file.remove_prefix(1);
  }
  if (!file.starts_with("<")) return std::nullopt;
  return "looks like an HTML page: the download went wrong, so fetch it again";
}

// The record that an error is about.
struct Place {
  std::string_view path;
  std::optional<std::uint64_t> record;
  std::uint64_t offset = 0;

  [[nodiscard]] tl::unexpected<Error> error(std::string_view what) const {
    const std::string number = record ? fmt::format("record {}", *record) : "the record";
    return make_error("{}: {} at offset {} {}", path, number, offset, what);
  }
  [[nodiscard]] tl::unexpected<Error> truncated(std::uint64_t have, std::uint64_t need) const {
    return error(
        fmt::format("is truncated ({} of {} bytes are there): copy the file again, or "
                    "write it anew if its writer was interrupted",
                    have, need));
  }
};

// The payload's length, bytes, once its checksum is right and the whole record is in the file.
Result<std::uint64_t> payload_length(std::string_view file, const Place& place) {
  if (place.offset >= file.size()) {
    return place.error(fmt::format(
        "would be behind the end of the file ({} bytes): the file was cut or the index is of "
        "another one, so copy both again",
        file.size()));
  }
  const std::uint64_t left = file.size() - place.offset;
  const bool has_length =
      left >= kHeader && crc32c(file.substr(place.offset, 8)) ==
                             unmask_crc32c(load<std::uint32_t>(file, place.offset + 8));
  if (!has_length && place.offset == 0) {
    if (const auto foreign = foreign_content(file)) return place.error(*foreign);
  }
  if (left < kHeader) return place.truncated(left, kTfrecordOverhead);
  if (!has_length) {
    return place.error(
        "has a bad length CRC: what follows in the file cannot be read in order, so copy it again "
        "(at offset 0: is it a TFRecord file at all?)");
  }
  const auto length = load<std::uint64_t>(file, place.offset);
  if (length > kMaxTfrecordPayload) {
    return place.error(
        fmt::format("claims {} bytes, more than the {} that a record may have: "
                    "write the file anew",
                    length, kMaxTfrecordPayload));
  }
  if (length + kTfrecordOverhead > left) return place.truncated(left, length + kTfrecordOverhead);
  return length;
}

Result<std::string_view> checked_payload(std::string_view file, const Place& place,
                                         std::uint64_t length) {
  const std::string_view payload = file.substr(place.offset + kHeader, length);
  const auto stored_crc = load<std::uint32_t>(file, place.offset + kHeader + length);
  if (crc32c(payload) != unmask_crc32c(stored_crc)) {
    return place.error("has a bad data CRC: its bytes were changed, so copy the file again");
  }
  return payload;
}

}  // namespace

TfrecordFrame tfrecord_frame(std::string_view payload) {
  const std::string length = stored(std::uint64_t{payload.size()});
  return {length + stored(mask_crc32c(crc32c(length))), stored(mask_crc32c(crc32c(payload)))};
}

Result<TfrecordWriter> TfrecordWriter::create(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.is_valid()) return tl::unexpected(write_error(path, errno, 0));
  return TfrecordWriter(path, std::move(fd));
}

Result<std::uint64_t> TfrecordWriter::append(std::string_view payload) {
  if (payload.size() > kMaxTfrecordPayload) {
    return make_error("{}: record {} of {} bytes is longer than the {} that a record may have",
                      path_, num_records_, payload.size(), kMaxTfrecordPayload);
  }
  const TfrecordFrame frame = tfrecord_frame(payload);
  buffer_.append(frame.header).append(payload).append(frame.footer);
  if (buffer_.size() >= kBuffer) {
    if (auto flushed = flush(); !flushed) return tl::unexpected(flushed.error());
  }
  const std::uint64_t start = size_;
  size_ += payload.size() + kTfrecordOverhead;
  ++num_records_;
  return start;
}

Result<void> TfrecordWriter::flush() {
  const int error = fd_.is_valid() ? write_all(fd_.get(), buffer_) : EBADF;
  if (error != 0) {
    fd_.reset();
    return tl::unexpected(write_error(path_, error, buffer_.size()));
  }
  buffer_.clear();
  return {};
}

Result<void> TfrecordWriter::close() {
  if (auto flushed = flush(); !flushed) return flushed;
  const int error = ::fsync(fd_.get()) == 0 ? 0 : errno;
  fd_.reset();
  if (error != 0) return tl::unexpected(write_error(path_, error, size_));
  return {};
}

Result<TfrecordReader> TfrecordReader::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  return TfrecordReader(std::move(*file));
}

Result<std::optional<std::string_view>> TfrecordReader::next() {
  if (offset_ == file_size()) return std::nullopt;
  const Place place{path(), num_read_, offset_};
  const auto length = payload_length(file_.bytes(), place);
  if (!length) return tl::unexpected(length.error());
  offset_ += *length + kTfrecordOverhead;
  ++num_read_;
  return checked_payload(file_.bytes(), place, *length);
}

Result<std::string_view> TfrecordReader::read_at(std::uint64_t offset,
                                                 std::optional<std::uint64_t> record) const {
  const Place place{path(), record, offset};
  const auto length = payload_length(file_.bytes(), place);
  if (!length) return tl::unexpected(length.error());
  return checked_payload(file_.bytes(), place, *length);
}

}  // namespace hvd
