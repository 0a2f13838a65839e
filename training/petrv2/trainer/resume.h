// Where a training goes on: rank 0 finds and reads the checkpoint, and what it holds is told to the
// others as text. Thread: the trainer's.
#pragma once

#include <string>

#include "base/status.h"
#include "training/formats/checkpoint_store.h"
#include "training/petrv2/trainer/train_options.h"
#include "training/petrv2/trainer/train_state.h"

namespace hvd::petrv2 {

class Resume {
 public:
  // All not owned, outlive this. `data`: which data set the training has.
  Resume(const TrainOptions& options, const std::string& data, TrainState& state)
      : options_(options), data_(data), state_(state) {}

  // Of rank 0 alone: the checkpoint that --resume asks for, if there is one. One of another data
  // set or seed, and a beginning behind the newest of --out, are errors.
  [[nodiscard]] Result<void> read();

  // The position as text and back: what rank 0 tells the others.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Result<void> take_text(const std::string& text);

  [[nodiscard]] TrainPosition& position() { return position_; }
  [[nodiscard]] const TrainPosition& position() const { return position_; }
  // The checkpoint's path; empty where the training begins, and on all ranks but 0.
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  [[nodiscard]] Result<void> check_not_behind(const NewestCheckpoint& newest) const;
  [[nodiscard]] Result<void> take(const SafetensorsFile& file);

  const TrainOptions& options_;
  const std::string& data_;
  TrainState& state_;
  TrainPosition position_;
  std::string source_;
};

}  // namespace hvd::petrv2
