// What the gradients of a bucket travel as, and the conversions of data in the CPU's memory. Pure.
#pragma once

#include <cstddef>

#include "hvdrun/communicator.h"
#include "hvdrun/sync_options.h"

namespace hvd {

struct WireFormat {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kAverage;
  float scale = 1;  // of each rank's numbers before the reduction, and again of the result
  bool is_compressed = false;  // `type` is another one than the gradients'
};

// type: of the gradients. float16 is summed scaled by 1 / sqrt(num_ranks) on either side, so that
// large numbers do not overflow in the sum, nor small ones vanish before it.
[[nodiscard]] WireFormat wire_format(DataType type, bool is_first_bucket, Compression compression,
                                     int num_ranks);

// to: `count` elements of format.type, which is a 16-bit one. Rounds to nearest even.
void compress(const float* from, void* to, std::size_t count, const WireFormat& format);
void decompress(const void* from, float* to, std::size_t count, const WireFormat& format);

}  // namespace hvd
