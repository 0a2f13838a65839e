// What GradientSynchronizer is made of: hooks count the gradients of a step, a full bucket is
// filled and posted to the channel, in order.
//
//   open       from construction or reset() on: gradients come; the communicating backward fills
//   and
//              posts buckets (from the second step on)
//   finish()   fills and posts what is left and waits; closed until reset()
//
// Threads: the trainer's and those of autograd, which call on_gradient(). The mutex is held while a
// bucket is filled: two hooks do not fill at once, and a copy on the host holds nobody else up.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hvdrun/gradient_synchronizer.h"
#include "runtime/bucket_progress.h"
#include "runtime/gradient_sync_bucket.h"
#include "runtime/gradient_sync_channel.h"
#include "runtime/gradient_sync_hooks.h"
#include "runtime/gradient_sync_report.h"

namespace hvd {

class GradientSynchronizer::Core {
 public:
  Core(std::vector<NamedParameter> parameters, Communicator& data, Communicator& control,
       const SyncOptions& options);

  void set_accumulating(bool is_accumulating);
  void set_riders(std::span<const double> values);
  [[nodiscard]] Result<void> finish();
  void reset();

  // The trainer's thread, between finish() and the next backward.
  [[nodiscard]] const std::vector<at::Tensor>& gradients() const { return gradients_; }
  [[nodiscard]] const std::vector<at::Tensor>& flat_gradients() const { return flat_gradients_; }
  [[nodiscard]] at::Tensor riders() const { return mean_riders_; }
  [[nodiscard]] std::int64_t num_missing() const { return num_missing_; }
  [[nodiscard]] std::vector<std::vector<std::string>> bucket_names() const;
  [[nodiscard]] std::uint64_t bytes_on_wire() const;

 private:
  // With the mutex held.
  void on_gradient(std::size_t parameter);
  void arrive(std::size_t parameter);
  void fail(std::string message);
  [[nodiscard]] Result<void> make_buckets();
  [[nodiscard]] std::vector<std::vector<std::size_t>> plan(
      const std::vector<std::int64_t>& order) const;
  void add_bucket(std::vector<std::size_t> parameters, const at::TensorOptions& options);
  void fill(std::size_t bucket);
  void join_streams(std::size_t bucket);
  void post_filled();
  void report_lacking() const;
  [[nodiscard]] Result<void> finish_step();
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<std::size_t>& parameters) const;

  const SyncOptions options_;
  Communicator& data_;
  Communicator& control_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::size_t> by_name_;     // place in the order of names -> parameter
  std::vector<std::size_t> name_place_;  // and back

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool is_accumulating_ = false;
  bool is_open_ = true;
  std::vector<std::size_t> arrivals_;  // of the first step
  std::optional<Error> error_;         // of this rank's own
  std::vector<double> riders_;         // of this step
  std::int64_t num_missing_ = 0;
  std::optional<BucketProgress> progress_;  // from the end of the first step on
  std::vector<SyncBucket> buckets_;
  std::vector<std::unique_ptr<StageTimes>> times_;  // of buckets that are not posted
  std::vector<std::vector<c10::Stream>> streams_;   // that gradients of a bucket came on
  std::vector<at::Tensor> gradients_;
  std::vector<at::Tensor> flat_gradients_;
  at::Tensor mean_riders_;

  SyncReport report_;
  std::unique_ptr<SyncChannel> channel_;  // null: one rank alone
  const GradientHooks hooks_;             // last: gone before what they call
};

}  // namespace hvd
