// What this worker is doing just now, for whoever asks from another thread: the heartbeats to the
// launcher and the dump on a stall. Writers: the trainer's thread and the communication thread;
// readers: any. Never blocks for long: no I/O, no CUDA call is made under its lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace hvd {

struct Activity {
  std::string phase = "registering";  // "connecting", "verifying", "running", "finalizing"
  std::uint64_t step = 0;
  std::uint64_t scheduled = 0;       // sequence number of the last collective handed over, from 1
  std::uint64_t completed = 0;       // of the last one that has completed
  std::string waiting_for;           // "all_reduce of bucket 3"; empty: nothing is in flight
  std::vector<std::string> missing;  // tensors that the next bucket still lacks, six at most
  std::uint32_t num_missing = 0;     // of all of them
};

class ActivityBoard {
 public:
  // change: void(Activity&), short.
  template <typename Change>
  void update(Change change) {
    const std::lock_guard lock(mutex_);
    change(activity_);
  }
  [[nodiscard]] Activity read() const {
    const std::lock_guard lock(mutex_);
    return activity_;
  }

 private:
  mutable std::mutex mutex_;
  Activity activity_;
};

}  // namespace hvd
