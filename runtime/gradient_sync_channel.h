// The communication thread: reduces buckets in the order in which they are posted, while backward
// goes on.
//
//   communicator kCpu   the thread itself reduces; gradients of a GPU go through pinned memory
//   communicator kCuda  the thread hands conversions and all-reduces to the communicator's stream,
//                       which waits for the streams that filled the bucket; their completion is
//                       found out later, for those who want to be told
//
// Lifecycle: made once the buckets are there; posts and finish() in turns; destroyed after a
// collective in progress has ended. Threads: post() any, one at a time; the rest the trainer's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/gradient_sync_bucket.h"
#include "runtime/gradient_sync_times.h"

namespace hvd {

class SyncChannel {
 public:
  // device: of the gradients that are not in the CPU's memory, if there are any. data and report:
  // not owned, outlive this; report is told of collectives by this thread only.
  SyncChannel(Communicator& data, const SyncOptions& options, std::optional<c10::Device> device,
              SyncReport& report);
  ~SyncChannel();
  SyncChannel(const SyncChannel&) = delete;
  SyncChannel& operator=(const SyncChannel&) = delete;

  // For one bucket on its way; to be posted with it.
  [[nodiscard]] std::unique_ptr<StageTimes> new_times();
  // On the current stream: before the bucket is filled (kFull) and after it (kFilled).
  void mark_fill(StageTimes& times, const SyncBucket& bucket, Stage stage) const;
  // Not touched again until finish().
  void post(SyncBucket& bucket, std::unique_ptr<StageTimes> times);

  // All that has been posted is reduced (kCpu) or handed over, and the current stream waits for it
  // (kCuda). The first error is final.
  [[nodiscard]] Result<void> finish();

  [[nodiscard]] std::uint64_t bytes_on_wire() const { return bytes_on_wire_; }

 private:
  struct Job {
    SyncBucket* bucket = nullptr;
    std::unique_ptr<StageTimes> times;
    std::uint64_t sequence = 0;
    bool is_started = false;
  };

  void run();
  [[nodiscard]] std::optional<Job> take();
  void handle(Job job);
  [[nodiscard]] Result<void> reduce(Job& job);
  [[nodiscard]] Result<void> send(SyncBucket& bucket);
  void mark(Job& job, Stage stage) const;
  void poll();
  void report_pending();
  void report_complete(Job& job);
  [[nodiscard]] bool is_on_stream(const SyncBucket& bucket) const;

  Communicator& data_;
  const SyncOptions options_;
  const bool is_cuda_;                       // the communicator
  const std::optional<c10::Stream> stream_;  // where buckets of the GPU are converted
  SyncReport& report_;

  // The thread's.
  std::deque<Job> pending_;  // on the stream, not known to be complete
  std::optional<TimeBase> base_;
  std::optional<c10::Event> finished_;  // all that was handed over; read by finish() in between
  std::atomic<std::uint64_t> bytes_on_wire_ = 0;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable handled_;
  // Guarded by mutex_.
  std::deque<Job> queue_;
  std::vector<std::unique_ptr<StageTimes>> spare_times_;
  std::uint64_t num_posted_ = 0;
  std::uint64_t num_handled_ = 0;
  bool is_stopping_ = false;
  std::optional<Error> error_;

  std::thread thread_;
};

}  // namespace hvd
