// The folder of the workers' timelines: made with the job, sent to the launcher after it, removed
// when the launcher says goodbye. A launcher that has gone leaves it where it is.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "agent/job.h"
#include "agent/job_dir.h"

namespace hvd {

namespace v1 = hvdrun::v1;

Result<void> Job::make_timeline_dir() {
  auto path = plan_timeline_dir(timeline_dir_parents(geteuid()), hello_.job_id(), hello_.node());
  if (!path) return tl::unexpected(path.error());
  if (auto made = make_job_dir(*path); !made) return made;
  timeline_dir_ = std::move(*path);
  return {};
}

void Job::take_fetch() {
  timeline_files_.emplace(timeline_dir_);
  send_output();
}

// After all output of the workers, on the same credit.
void Job::send_files() {
  if (!timeline_files_ || timeline_files_->is_done() || !output_->is_empty()) return;
  v1::OutputReply piece = timeline_files_->next_piece(output_->credit());
  std::uint64_t num_bytes = 0;
  for (const v1::FileChunk& chunk : piece.files()) num_bytes += chunk.data().size();
  output_->spend_credit(num_bytes);
  if (piece.files_size() > 0 || piece.files_done()) service_.send_output(std::move(piece));
}

void Job::leave_timeline() {
  if (timeline_dir_.empty()) return;
  if (has_launcher_said_bye_) remove_timelines(timeline_dir_);
  // Goes if nothing is left in it, such as the dump of a flight recorder, whose place was told.
  rmdir(timeline_dir_.c_str());
}

}  // namespace hvd
