// What `nvidia-smi --query-gpu=index,utilization.gpu,memory.used,memory.total
// --format=csv,noheader,nounits -l S` prints: one line a GPU and look. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "hvdrun/v1/vitals.pb.h"

namespace hvd {

// "0, 35, 20123, 81559". A number that nvidia-smi does not know ("[N/A]", "[Not Supported]") is
// left out; a line that is no such line is nullopt.
[[nodiscard]] std::optional<hvdrun::v1::GpuSample> parse_gpu_line(std::string_view line);

// Puts lines together and keeps each GPU's last sample until it is taken.
class GpuLines {
 public:
  static constexpr std::size_t kMaxLine = 4096;  // a longer one is dropped

  // Returns whether a sample was in it.
  bool add(std::string_view bytes);
  // Empty: nothing has come since the last call.
  [[nodiscard]] hvdrun::v1::GpuSummary take();
  // The last line that was none of a GPU: an error message of the program.
  [[nodiscard]] const std::string& last_words() const { return last_words_; }

 private:
  bool take_line(std::string_view line);

  std::string partial_;
  std::string last_words_;
  std::map<std::uint32_t, hvdrun::v1::GpuSample> fresh_;
};

}  // namespace hvd
