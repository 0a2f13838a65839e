// Which GPUs of its node a job takes: some, all, or none that anybody counts. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace hvd {

struct GpuClaim {
  bool is_all = false;
  std::set<unsigned> indices;
  friend bool operator==(const GpuClaim&, const GpuClaim&) = default;
};

// "all", "0,1,3", or "none".
[[nodiscard]] std::optional<GpuClaim> parse_gpu_claim(std::string_view text);
[[nodiscard]] std::string to_text(const GpuClaim& claim);

// Whether both cannot have what they want. "All" excludes whoever wants any.
[[nodiscard]] bool collide(const GpuClaim& a, const GpuClaim& b);

}  // namespace hvd
