// Random numbers that depend on what they are for and on nothing else: Philox 4x32-10 (Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011) keyed by the seed, its counter made of
// epoch, sample, purpose and number of the draw. A resumed job, another number of ranks or of
// threads draws the same. A value; each holder draws its own series.
#pragma once

#include <array>
#include <cstdint>

namespace hvd::petrv2 {

// What is drawn. The numbers are part of what a checkpoint continues: never renumber.
enum class DrawPurpose : std::uint16_t {
  kPermutation = 1,
  kImage = 2,
  kBev = 3,
  kPreviousFrame = 4,
  kReplacement = 5,
  kNoiseImage = 6,
  kGridMask = 7,
  kDenoising = 8,
  kDropout = 9,
  kInitialWeights = 10,
};

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Ten rounds of Philox 4x32.
constexpr PhiloxBlock philox_4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Series of (seed, epoch, index, purpose): epoch below 2^32, index below 2^48, 2^33 draws.
class CounterRng {
 public:
  CounterRng(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, DrawPurpose purpose)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
        counter_{
            0, static_cast<std::uint32_t>(index),
            (static_cast<std::uint32_t>(index >> 32U) << 16U) | static_cast<std::uint32_t>(purpose),
            static_cast<std::uint32_t>(epoch)} {}

  // 64 random bits.
  std::uint64_t next() {
    if (num_used_ == 0) {
      block_ = philox_4x32_10(counter_, key_);
      ++counter_[0];
    }
    const std::uint64_t value = (std::uint64_t{block_[num_used_ + 1]} << 32U) | block_[num_used_];
    num_used_ = (num_used_ + 2) % 4;
    return value;
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

  // Uniform in [low, high); low if they are equal.
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Uniform in {0 .. count - 1}, without bias; count > 0.
  std::uint64_t below(std::uint64_t count) {
    const std::uint64_t num_excess = (0 - count) % count;  // 2^64 mod count
    std::uint64_t value = next();
    while (value < num_excess) value = next();
    return value % count;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  unsigned num_used_ = 0;
};

}  // namespace hvd::petrv2
