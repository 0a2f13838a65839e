// The trainer's progress on its standard streams and in a JSON lines file; rank 0's job.
//
// On a terminal one plain line a second (so that a copied log stays readable), else one line each
// `log_every` steps, so that a log file does not depend on the machine's speed. What a line says:
// step_report.h. With JSON a line for each step, handed to the kernel at once.
//
// Lifecycle: open(), report() after each step, finish() at the end, which prints the steps that no
// line has told yet. Thread: one at a time. Time is passed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "training/petrv2/step_report.h"

namespace hvd::petrv2 {

// Which steps get a line. Pure.
struct LineSchedule {
  bool is_terminal = false;
  std::uint64_t log_every = 50;  // steps, >= 1

  // `num_steps`: since the last line, this one included; `last_line`: when it was, if there was
  // one. On a terminal the first step is told at once.
  [[nodiscard]] bool is_due(std::uint64_t num_steps, std::optional<SteadyTime> last_line,
                            SteadyTime now) const;
};

struct ProgressOptions {
  std::uint64_t log_every = 50;
  // A file, appended to, so that a resumed training goes on in it; "-" for standard output, and the
  // lines for people then go to standard error; empty for none.
  std::string json;
  int stdout_fd = 1;  // not owned
  int stderr_fd = 2;  // not owned
};

class Progress {
 public:
  [[nodiscard]] static Result<Progress> open(const ProgressOptions& options);

  // `wall_time`: seconds since 1970. An output that cannot be written any more (a full disk, a
  // reader that has gone) is told once and left alone from then on; the training may go on.
  [[nodiscard]] Result<void> report(const StepReport& report, SteadyTime now, double wall_time);
  [[nodiscard]] Result<void> finish(SteadyTime now);

 private:
  // Somewhere to write lines to: a file of ours or a stream that is not.
  struct Sink {
    std::string name;
    UniqueFd owned;
    int fd = -1;  // below 0: none, or not any more

    [[nodiscard]] Result<void> write_line(std::string line);
  };

  Progress(LineSchedule schedule, Sink text, Sink json)
      : schedule_(schedule), text_(std::move(text)), json_(std::move(json)) {}

  LineSchedule schedule_;
  Sink text_;
  Sink json_;
  StepWindow window_;
  std::optional<SteadyTime> last_line_;
};

}  // namespace hvd::petrv2
