#include "launcher/line_stamp.h"

#include <array>
#include <utility>

namespace hvd {

std::string line_stamp(std::time_t now, bool is_before_mark) {
  std::tm local{};
  std::array<char, 64> text{};
  if (localtime_r(&now, &local) == nullptr) return "";
  const std::size_t size = std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &local);
  return std::string(text.data(), size) + (is_before_mark ? "" : " ");
}

std::function<std::string()> running_line_stamp(bool is_before_mark,
                                                std::function<std::time_t()> clock) {
  return [is_before_mark, clock = std::move(clock), second = std::time_t{-1},
          text = std::string()]() mutable {
    if (const std::time_t now = clock(); now != second) {
      second = now;
      text = line_stamp(now, is_before_mark);
    }
    return text;
  };
}

}  // namespace hvd
