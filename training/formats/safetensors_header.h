// The JSON header of a safetensors file: for each tensor its type, shape and place in the data that
// follows, and a map of strings to strings named "__metadata__". Pure.
//
// The layout of the whole file: header length (uint64, little-endian), header, data. Writing puts
// the tensors in the order of falling item size, then of name, and pads the header with spaces to a
// multiple of 8, so that every tensor starts at a multiple of its item size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

using TensorMetadata = std::map<std::string, std::string>;

// A longer header is refused before it is parsed, bytes; the limit of the safetensors library.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

struct TensorPlace {
  std::string dtype;                 // "F32"
  std::vector<std::uint64_t> shape;  // empty for a scalar
  std::uint64_t begin = 0;           // bytes from the start of the data
  std::uint64_t end = 0;

  bool operator==(const TensorPlace&) const = default;
};

struct SafetensorsHeader {
  TensorMetadata metadata;
  std::map<std::string, TensorPlace> tensors;
};

// What a tensor is, before it has a place.
struct TensorSpec {
  std::string name;  // UTF-8
  std::string dtype;
  std::vector<std::uint64_t> shape;
};

struct SafetensorsPlan {
  std::string header;                // length, JSON and padding: the file's first bytes
  std::vector<std::size_t> order;    // indices into the specs, in the order of the data
  std::uint64_t num_data_bytes = 0;  // of all tensors
};

// Bytes of one item of a type such as "BF16"; nothing if it is not known.
[[nodiscard]] std::optional<std::uint64_t> tensor_item_size(std::string_view dtype);

// Bytes of a whole tensor; nothing if the type is not known or the product overflows.
[[nodiscard]] std::optional<std::uint64_t> tensor_num_bytes(
    std::string_view dtype, const std::vector<std::uint64_t>& shape);

[[nodiscard]] Result<SafetensorsPlan> plan_safetensors(const std::vector<TensorSpec>& tensors,
                                                       const TensorMetadata& metadata);

// Checks everything: types, shapes, sizes, and that the tensors fill the data without overlap or
// hole. The error names the tensor and what is wrong.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                                 std::uint64_t num_data_bytes);

}  // namespace hvd
