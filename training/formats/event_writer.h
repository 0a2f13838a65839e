// TensorBoard event files: scalars over steps, for `tensorboard --logdir FOLDER`.
//
// Lifecycle: create() makes the folder and a new file in it; add_scalars() any number of times;
// close(). What was added is handed to the kernel with the first call that comes a second or more
// after the last such hand-over, and at close(). Destroyed without close() it loses at most that.
// Thread: one at a time. Time is passed in: seconds since 1970.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "training/formats/tfrecord.h"

namespace hvd {

struct Scalar {
  std::string tag;   // "loss/total": TensorBoard groups by what stands before the slash
  double value = 0;  // stored as fp32
};

// One record's payload. Pure.
[[nodiscard]] std::string encode_version_event(double wall_time);
[[nodiscard]] std::string encode_scalar_event(double wall_time, std::int64_t step,
                                              const std::vector<Scalar>& scalars);

class EventWriter {
 public:
  // The file: "events.out.tfevents.<seconds>.<host>"; if that exists, the next free second.
  [[nodiscard]] static Result<EventWriter> create(const std::string& folder, double wall_time,
                                                  const std::string& host);

  [[nodiscard]] Result<void> add_scalars(double wall_time, std::int64_t step,
                                         const std::vector<Scalar>& scalars);
  // Hands over what was added, whatever the time.
  [[nodiscard]] Result<void> flush() { return file_.flush(); }
  [[nodiscard]] Result<void> close() { return file_.close(); }

  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  EventWriter(TfrecordWriter file, double wall_time)
      : file_(std::move(file)), last_flush_(wall_time) {}

  TfrecordWriter file_;
  double last_flush_;  // seconds since 1970
};

}  // namespace hvd
