// The last lines that each rank wrote to stderr, for the report of a failure. Pure; bounded: kept
// is what 20 lines need, never more than 64 KiB for a rank (twice that while it grows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

class Tail {
 public:
  static constexpr std::size_t kMaxLines = 20;
  static constexpr std::size_t kMaxBytes = 64 * 1024;

  explicit Tail(std::uint32_t world_size) : buffers_(world_size) {}

  // Bytes in the order in which the rank wrote them. Ranks outside the job are ignored.
  void add(std::uint32_t rank, std::string_view bytes);

  // At most kMaxLines, oldest first, without line ends, blank ones folded. Of a line that was
  // overwritten with \r the last state.
  [[nodiscard]] std::vector<std::string> lines(std::uint32_t rank) const;

 private:
  struct Buffer {
    std::string bytes;
    std::size_t trim_above = 4096;
  };
  std::vector<Buffer> buffers_;
};

}  // namespace hvd
