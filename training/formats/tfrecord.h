// TFRecord files: records one after the other, each a 64-bit length, the masked CRC-32C of the
// length, the payload, and the masked CRC-32C of the payload, all little-endian; no file header. A
// record of n bytes takes n + 16. Layout of TensorFlow's record_writer; uncompressed files only (a
// compressed one has no offsets, and JPEG does not shrink).
//
// Every error is one sentence with the file, the record's number (from 0), its byte offset, what is
// wrong with it, and what to do. Both checksums are checked at every read. A file that was cut
// between two records looks complete: compare it with its index (tfrecord_index.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"
#include "training/formats/mapped_file.h"

namespace hvd {

// What a record takes beyond its payload, bytes.
inline constexpr std::uint64_t kTfrecordOverhead = 16;
// A longer payload is taken for damage and never allocated or written, bytes.
inline constexpr std::uint64_t kMaxTfrecordPayload = std::uint64_t{1} << 30;

// The bytes around a payload. Pure.
struct TfrecordFrame {
  std::string header;  // 12 bytes
  std::string footer;  // 4 bytes
};
[[nodiscard]] TfrecordFrame tfrecord_frame(std::string_view payload);

// Appends records to a new file.
//
// Lifecycle: create(), append() any number of times, close(). Destroyed without close() it leaves a
// file whose end may be missing. After an error nothing more may be appended. Thread: one at a
// time.
class TfrecordWriter {
 public:
  // An existing file is replaced.
  [[nodiscard]] static Result<TfrecordWriter> create(const std::string& path);

  // The record's start offset in the file, bytes. Buffered: flush() or close() hands it over.
  [[nodiscard]] Result<std::uint64_t> append(std::string_view payload);

  // Everything appended is in the hands of the kernel: another process can read it.
  [[nodiscard]] Result<void> flush();

  // Everything appended is on the disk; the file is closed.
  [[nodiscard]] Result<void> close();

  [[nodiscard]] const std::string& path() const { return path_; }
  // Bytes appended so far, frames included: the next record's offset.
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  TfrecordWriter(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  std::string buffer_;
  std::uint64_t size_ = 0;
  std::uint64_t num_records_ = 0;
};

// Reads a file in order, or record by record at known offsets.
//
// Lifecycle: payloads point into the mapped file and live as long as the reader, also when it is
// moved. Thread: read_at() any; next() one at a time.
class TfrecordReader {
 public:
  [[nodiscard]] static Result<TfrecordReader> open(const std::string& path);

  // The next payload; nothing at a clean end of the file. After a wrong payload checksum the next
  // call goes on with the following record, for a caller that was asked to skip and count; after
  // any other error, where the next record starts is unknown and the same error comes again.
  [[nodiscard]] Result<std::optional<std::string_view>> next();

  // The payload of the record that starts at `offset`; `record` is its number, for the error.
  [[nodiscard]] Result<std::string_view> read_at(
      std::uint64_t offset, std::optional<std::uint64_t> record = std::nullopt) const;

  // Where next() reads, bytes.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  // Bytes of the whole file.
  [[nodiscard]] std::uint64_t file_size() const { return file_.bytes().size(); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  explicit TfrecordReader(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::uint64_t offset_ = 0;
  std::uint64_t num_read_ = 0;
};

}  // namespace hvd
