// What the ranks print: how its lines begin, and the files of --output-filename.
#include <fmt/ranges.h>

#include <utility>

#include "base/log.h"
#include "launcher/job.h"
#include "launcher/line_stamp.h"

namespace hvd {

void Job::begin_output(std::uint32_t world_size) {
  const OutputRequest& wanted = options_.output;
  lines_.emplace(world_size, sink_traits(STDOUT_FILENO, STDERR_FILENO));
  lines_->set_beginning(wanted.has_marks, wanted.has_time ? running_line_stamp(wanted.has_marks)
                                                          : std::function<std::string()>{});
  if (wanted.folder.empty()) return;
  const auto others = other_rank_folders(wanted.folder, world_size);
  if (!others.empty() && earlier_.empty()) {
    log(LogLevel::kWarning,
        "--output-filename {}: {} of an earlier job with another number of ranks is there, too",
        wanted.folder, fmt::join(others, ", "));
  }
  rank_files_ = std::make_unique<RankFiles>(
      loop_, wanted.folder, world_size,
      [](const std::string& sentence) { write_log(LogLevel::kWarning, sentence); });
}

// As late as can be: a job that cannot be started leaves what an earlier one has written. A further
// attempt writes behind what the one before it has written.
Result<void> Job::make_files() const {
  if (options_.output.folder.empty()) return {};
  return make_rank_files(options_.output.folder, static_cast<std::uint32_t>(plan_->ranks.size()),
                         earlier_.empty());
}

// Gives the files their part; `done` runs when what is returned has been called and the files are
// written as well.
std::function<void()> Job::also_to_files(const v1::OutputReply& output,
                                         std::function<void()> done) {
  if (!rank_files_) return done;
  std::vector<RankBytes> pieces;
  for (const v1::LogChunk& chunk : output.chunks()) {
    if (chunk.data().empty() || chunk.rank() >= plan_->ranks.size()) continue;
    pieces.push_back({chunk.rank(), chunk.stream() == v1::STREAM_STDERR, chunk.data()});
  }
  if (pieces.empty()) return done;
  const auto num_open = std::make_shared<int>(2);
  std::function<void()> part_done = [num_open, done = std::move(done)] {
    if (--*num_open == 0) done();
  };
  rank_files_->submit(std::move(pieces), part_done);
  return part_done;
}

Task<bool> Job::flush_files(SteadyTime deadline) {
  if (!rank_files_) co_return true;
  const bool is_written = co_await rank_files_->flush(deadline);
  co_return is_written;
}

}  // namespace hvd
