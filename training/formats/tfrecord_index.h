// The index of a TFRecord file: a text file beside it with one line a record, "OFFSET SIZE" in
// decimal, SIZE with the 16 bytes around the payload. The two columns that the `tfrecord` package
// and DALI read. It gives random access and tells a shard that was cut between two records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace hvd {

class TfrecordReader;

struct TfrecordIndexEntry {
  std::uint64_t offset = 0;  // of the record's first byte in the file
  std::uint64_t size = 0;    // of the whole record, payload + 16 bytes

  bool operator==(const TfrecordIndexEntry&) const = default;
};
using TfrecordIndex = std::vector<TfrecordIndexEntry>;

// "shard-00000-of-00004.tfrecord" -> "shard-00000-of-00004.index". Pure.
[[nodiscard]] std::string tfrecord_index_path(const std::string& tfrecord_path);

[[nodiscard]] Result<TfrecordIndex> read_tfrecord_index(const std::string& path);

// Replaces the file at once (temporary name, fsync, rename).
[[nodiscard]] Result<void> write_tfrecord_index(const std::string& path,
                                                const TfrecordIndex& index);

// The index made from the records themselves; reads the whole file and checks every checksum.
[[nodiscard]] Result<TfrecordIndex> build_tfrecord_index(const std::string& tfrecord_path);

// Whether the index describes this file: record follows record from offset 0, and the last ends
// where the file ends. Reads no record.
[[nodiscard]] Result<void> check_tfrecord_index(const TfrecordIndex& index,
                                                const TfrecordReader& reader);

}  // namespace hvd
