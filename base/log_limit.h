// How many lines of a log a stranger can cause: a few for each key (the address they come from,
// say) and some for all keys together within a window; the rest is counted, and told as one line a
// key when the window has ended. Pure: the time is passed in. One thread.
//
// A window begins with the first line after the last one has ended, and holds for all keys. A key
// is remembered only with a line of its own, so that not more than Bounds::lines_of_all are at
// once: who comes later, from whatever number of addresses, is counted together. IPv6 gives
// everybody 2^64 addresses: a key may better be the network.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace hvd {

class LogLimit {
 public:
  struct Bounds {
    std::size_t lines_of_one = 5;
    std::size_t lines_of_all = 200;
    Nanos window = std::chrono::seconds(10);
  };
  struct HeldBack {
    std::string key;  // empty: of all who have none of their own
    std::size_t count = 0;
  };

  explicit LogLimit(const Bounds& bounds) : bounds_(bounds) {}

  // Whether a line with this key is written at `now`; else it is counted. Where the window has
  // ended, take_ended() comes before it: what it has not told is then forgotten.
  [[nodiscard]] bool admits(std::string_view key, Nanos now) {
    if (has_ended(now)) begin_window();
    if (!ends_) ends_ = now + bounds_.window;
    const std::string_view shortened = key.substr(0, kMaxKey);
    auto found = keys_.find(shortened);
    if (num_written_ == bounds_.lines_of_all || (found != keys_.end() && is_full(found->second))) {
      ++(found == keys_.end() ? num_others_ : found->second.num_held_back);
      return false;
    }
    if (found == keys_.end()) found = keys_.emplace(shortened, Count{}).first;
    ++found->second.num_written;
    ++num_written_;
    return true;
  }

  // What a window that has ended by `now` held back, once, by key, the others last; nothing where
  // it has not ended or has held nothing back.
  [[nodiscard]] std::vector<HeldBack> take_ended(Nanos now) {
    std::vector<HeldBack> ended;
    if (!has_ended(now)) return ended;
    for (const auto& [key, count] : keys_) {
      if (count.num_held_back > 0) ended.push_back({key, count.num_held_back});
    }
    if (num_others_ > 0) ended.push_back({"", num_others_});
    begin_window();
    return ended;
  }

  // When take_ended() will have something if a line is held back; nothing: no window is open.
  [[nodiscard]] std::optional<Nanos> ends() const { return ends_; }

  [[nodiscard]] Nanos window() const { return bounds_.window; }
  [[nodiscard]] std::size_t num_keys() const { return keys_.size(); }

 private:
  static constexpr std::size_t kMaxKey = 128;
  struct Count {
    std::size_t num_written = 0;
    std::size_t num_held_back = 0;
  };

  [[nodiscard]] bool has_ended(Nanos now) const { return ends_ && now >= *ends_; }
  [[nodiscard]] bool is_full(const Count& count) const {
    return count.num_written >= bounds_.lines_of_one;
  }
  void begin_window() {
    keys_.clear();
    num_written_ = 0;
    num_others_ = 0;
    ends_.reset();
  }

  const Bounds bounds_;
  std::map<std::string, Count, std::less<>> keys_;
  std::size_t num_written_ = 0;  // of all keys
  std::size_t num_others_ = 0;   // held back, of who has no key
  std::optional<Nanos> ends_;    // of the window
};

}  // namespace hvd
