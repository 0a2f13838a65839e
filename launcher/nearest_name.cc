#include "launcher/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace hvd {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> previous(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> current = {i};
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current.push_back(std::min({change, previous[j] + 1, current[j - 1] + 1}));
    }
    previous = std::move(current);
  }
  return previous.back();
}

}  // namespace

std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongest = 64;  // what is longer is no slip of a finger
  if (word.size() > kLongest) return "";
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const auto name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace hvd
