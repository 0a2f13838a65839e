#include "training/petrv2/data/previous_frame.h"

#include <algorithm>

namespace hvd::petrv2 {
namespace {

constexpr std::size_t kFirst = 3;
constexpr std::size_t kEnd = 27;
constexpr std::size_t kFixed = 14;

}  // namespace

std::optional<std::size_t> choose_previous(std::size_t count, FrameChoice choice, CounterRng& rng) {
  if (count == 0) return std::nullopt;
  if (choice == FrameChoice::kFixed) return std::min(kFixed, count - 1);
  if (count <= kFirst) return count - 1;
  return kFirst + rng.below(std::min(kEnd, count) - kFirst);
}

}  // namespace hvd::petrv2
