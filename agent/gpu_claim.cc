#include "agent/gpu_claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kNone = "none";
constexpr unsigned kMostGpus = 1024;  // of one node, and more than any has

}  // namespace

std::optional<GpuClaim> parse_gpu_claim(std::string_view text) {
  GpuClaim claim;
  if (text == kNone) return claim;
  claim.is_all = text == kAll;
  if (claim.is_all) return claim;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto index = parse_number<unsigned>(text.substr(0, comma));
    if (!index || *index >= kMostGpus) return std::nullopt;
    claim.indices.insert(*index);
    if (comma == std::string_view::npos) return claim;
    text.remove_prefix(comma + 1);
  }
}

std::string to_text(const GpuClaim& claim) {
  if (claim.is_all) return std::string(kAll);
  return claim.indices.empty() ? std::string(kNone)
                               : fmt::format("{}", fmt::join(claim.indices, ","));
}

bool collide(const GpuClaim& a, const GpuClaim& b) {
  const auto wants_any = [](const GpuClaim& claim) {
    return claim.is_all || !claim.indices.empty();
  };
  if (a.is_all || b.is_all) return wants_any(a) && wants_any(b);
  return std::any_of(a.indices.begin(), a.indices.end(),
                     [&b](unsigned index) { return b.indices.contains(index); });
}

}  // namespace hvd
