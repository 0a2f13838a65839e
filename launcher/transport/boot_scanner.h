// Finds the lines of the boot script and the agent in a stream that may begin with noise. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hvd {

struct BootLine {
  enum class Kind { kNone, kFound, kPlace, kError, kReady };
  Kind kind = Kind::kNone;
  std::string text;  // after the word
};

class BootScanner {
 public:
  explicit BootScanner(std::string marker) : marker_(std::move(marker)) {}

  // Takes bytes up to and with the end of the first line that carries the marker, and not one more.
  // Returns how many it took: all of them while there is no such line.
  std::size_t take(std::string_view bytes, BootLine* line);

  // More came without a marker than a log-in can reasonably print.
  [[nodiscard]] bool is_too_noisy() const { return num_noise_bytes_ > kMaxNoise; }

  // The first 2 KiB of what came before the marker, also of what may yet begin with it.
  [[nodiscard]] std::string noise() const;

  static constexpr std::size_t kMaxNoise = 64 * 1024;
  static constexpr std::size_t kKeptNoise = 2 * 1024;

 private:
  void drop_noise(std::size_t size);

  const std::string marker_;
  std::string pending_;  // may still become a line with the marker
  std::string noise_;
  std::size_t num_noise_bytes_ = 0;
};

}  // namespace hvd
