// What a node said beside its stream: standard error and how its program ended. Bounded; written by
// whoever reads the node (the loop or the pump), read by the loop.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace hvd {

class SideText {
 public:
  // Keeps the first 2 KiB and drops the rest.
  void append(std::string_view text) {
    const std::lock_guard lock(mutex_);
    text_.append(text.substr(0, kLimit - text_.size()));
  }
  void set_ending(std::string ending) {
    const std::lock_guard lock(mutex_);
    if (!ending_) ending_ = std::move(ending);
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  // "exit 127", "SIGKILL"; empty if not known.
  [[nodiscard]] std::string ending() const {
    const std::lock_guard lock(mutex_);
    return ending_.value_or("");
  }

 private:
  static constexpr std::size_t kLimit = 2 * 1024;
  mutable std::mutex mutex_;
  std::string text_;                   // guarded by mutex_
  std::optional<std::string> ending_;  // guarded by mutex_
};

}  // namespace hvd
