#include "training/petrv2/verify/filler.h"

#include <utility>

namespace hvd::petrv2 {
namespace {

// Where a part begins whose predecessor may be absent or shorter.
constexpr std::pair<std::string_view, int> kParts[] = {
    {"pts_bbox_head.reference_points.weight", 14},
    {"pts_bbox_head.transformer.decoder.post_norm.weight", 127},
    {"pts_bbox_head.cls_branches.0.0.weight", 129},
    {"pts_bbox_head.reg_branches.0.reg_branch.0.weight", 189},
};

}  // namespace

double fill_value(std::uint32_t tensor, std::uint64_t index) {
  std::uint32_t x = static_cast<std::uint32_t>(index) + tensor * 0x9E3779B9U;
  x ^= x >> 16;
  x *= 0x85EBCA6BU;
  x ^= x >> 13;
  x *= 0xC2B2AE35U;
  x ^= x >> 16;
  return x * 0x1p-31 - 1;
}

std::vector<double> fill_values(std::uint32_t tensor, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t k = 0; k < count; ++k) values[k] = fill_value(tensor, k);
  return values;
}

int HeadNumbering::number(std::string_view name) {
  if (name == "pts_bbox_head.code_weights") return -1;
  for (const auto& [first, start] : kParts) {
    if (name == first) next_ = start;
  }
  return next_++;
}

}  // namespace hvd::petrv2
