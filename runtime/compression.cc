#include "runtime/compression.h"

#include <cmath>

#include "runtime/half_float.h"

namespace hvd {
namespace {

Float16 narrow(float value, Float16 /*type*/) { return to_float16(value); }
Bfloat16 narrow(float value, Bfloat16 /*type*/) { return to_bfloat16(value); }

template <typename Half>
void compress_as(const float* from, void* to, std::size_t count, float scale) {
  auto* const output = static_cast<Half*>(to);
  for (std::size_t i = 0; i < count; ++i) output[i] = narrow(from[i] * scale, Half{});
}

template <typename Half>
void decompress_as(const void* from, float* to, std::size_t count, float scale) {
  const auto* const input = static_cast<const Half*>(from);
  for (std::size_t i = 0; i < count; ++i) to[i] = to_float(input[i]) * scale;
}

}  // namespace

WireFormat wire_format(DataType type, bool is_first_bucket, Compression compression,
                       int num_ranks) {
  WireFormat format{type};
  if (type == DataType::kFloat32 && !is_first_bucket && compression != Compression::kNone) {
    format.is_compressed = true;
    format.type = compression == Compression::kFloat16 ? DataType::kFloat16 : DataType::kBfloat16;
  }
  if (format.type == DataType::kFloat16) {
    format.op = ReduceOp::kSum;
    format.scale = 1 / std::sqrt(static_cast<float>(num_ranks));
  }
  return format;
}

void compress(const float* from, void* to, std::size_t count, const WireFormat& format) {
  if (format.type == DataType::kFloat16) {
    compress_as<Float16>(from, to, count, format.scale);
  } else {
    compress_as<Bfloat16>(from, to, count, format.scale);
  }
}

void decompress(const void* from, float* to, std::size_t count, const WireFormat& format) {
  if (format.type == DataType::kFloat16) {
    decompress_as<Float16>(from, to, count, format.scale);
  } else {
    decompress_as<Bfloat16>(from, to, count, format.scale);
  }
}

}  // namespace hvd
