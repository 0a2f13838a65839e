// safetensors files: named tensors and a map of texts, readable without executing anything and
// without reading all of it. Written straight from the tensors' memory, read by mapping the file.
//
// Every malformed input is one sentence with the file, the tensor and what is wrong with it; the
// header is bounded before it is parsed, and every place is checked against the file's size.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "training/formats/mapped_file.h"
#include "training/formats/safetensors_header.h"

namespace hvd {

// A tensor to write: contiguous, row-major, little-endian. The memory is not owned.
struct TensorBytes {
  TensorSpec spec;
  std::string_view bytes;  // as many as type and shape say
};

// Replaces the file at once: complete and durable, or untouched (atomic_file.h). The number of
// bytes written.
[[nodiscard]] Result<std::uint64_t> write_safetensors(const std::string& path,
                                                      const std::vector<TensorBytes>& tensors,
                                                      const TensorMetadata& metadata);

// Lifecycle: the bytes handed out live as long as the object, also when it is moved. Thread: any.
class SafetensorsFile {
 public:
  [[nodiscard]] static Result<SafetensorsFile> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const TensorMetadata& metadata() const { return header_.metadata; }
  [[nodiscard]] const std::map<std::string, TensorPlace>& tensors() const {
    return header_.tensors;
  }
  // A tensor's data; an error that names the file if it has no such tensor.
  [[nodiscard]] Result<std::string_view> bytes(const std::string& name) const;

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header, std::uint64_t data_start)
      : file_(std::move(file)), header_(std::move(header)), data_start_(data_start) {}

  MappedFile file_;
  SafetensorsHeader header_;
  std::uint64_t data_start_;  // of the first tensor in the file, bytes
};

}  // namespace hvd
