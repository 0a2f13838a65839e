// The workers' timelines: where they stand, fetched after the job, merged into one file. Whatever
// could not be merged stays on its node, and that is said.
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/plural.h"
#include "launcher/job.h"
#include "launcher/timeline/timeline_merge.h"
#include "launcher/transport/worker_pool.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr Nanos kFetchTime = seconds(30);
constexpr Nanos kPatience = milliseconds(200);
constexpr Nanos kCancelTime = seconds(1);
constexpr std::size_t kMostPlaces = 8;
constexpr mode_t kFileMode = 0666;

// Owned by the loop and by the thread that merges, which may be stuck in a write.
struct MergeWork {
  explicit MergeWork(Loop& loop) : is_done(loop) {}

  std::vector<std::shared_ptr<TimelineSpool>> spools;
  std::vector<MergeSource> sources;
  MergeTarget target;
  Nanos job_start{};
  std::atomic<bool> is_cancelled = false;
  Result<MergedTimeline> result;
  Event is_done;
};

void run_merge(Loop& loop, const std::shared_ptr<MergeWork>& work) {
  work->result = merge_timelines(work->sources, work->job_start, work->target, work->is_cancelled);
  // Nobody waits for a merge that was given up.
  if (!work->is_cancelled) boost::asio::post(loop, [work] { work->is_done.set(); });
}

std::string size_text(std::uint64_t num_bytes) {
  return num_bytes < 1U << 20U ? fmt::format("{} KiB", (num_bytes + 1023) >> 10U)
                               : fmt::format("{} MiB", num_bytes >> 20U);
}

}  // namespace

// After a kill -9 of hvdrun this line is all that tells where they are.
void Job::tell_timeline_places() const {
  if (!options_.timeline.is_wanted()) return;
  std::vector<std::string> places;
  const auto nodes = planned_nodes();
  for (const Node* node : nodes) {
    if (places.size() == kMostPlaces) break;
    places.push_back(fmt::format("{}:{}", node->host.label(), node->hello->timeline_dir()));
  }
  const std::size_t num_more = nodes.size() - places.size();
  write_log(
      LogLevel::kInfo,
      fmt::format("timelines stand in {}{} until they are merged into {}", fmt::join(places, ", "),
                  num_more > 0 ? fmt::format(" and so on for {} more", num_more) : "",
                  options_.timeline.path));
}

Task<void> Job::collect_timelines() {
  if (!options_.timeline.is_wanted() || spawn_boottime_ == Nanos::zero()) co_return;
  for (const auto& node : nodes_) {
    if (node->is_spawn_sent) ask_for_timelines(*node);
  }
  const Nanos limit = std::min<Nanos>(kFetchTime, 2 * options_.lease);
  const SteadyTime deadline = steady_clock::now() + limit;
  while (!is_leaving_now_ && !have_timelines_come() && steady_clock::now() < deadline) {
    co_await wait_for_change(deadline);
  }
  for (const auto& node : nodes_) {
    if (!node->timeline || node->timeline->is_over) continue;
    const bool is_gone = node->is_lost || node->is_link_closed;
    node->timeline->problem = is_gone ? "the connection was lost"
                              : is_leaving_now_
                                  ? "hvdrun was told to leave"
                                  : fmt::format("it took more than {}", format_duration(limit));
  }
  co_await merge_fetched();
  tell_unfetched();
}

void Job::ask_for_timelines(Node& node) {
  NodeTimeline& timeline = node.timeline.emplace();
  const auto folder = std::filesystem::path(options_.timeline.path).parent_path();
  auto spool = TimelineSpool::open(folder.string());
  if (!spool) {
    timeline.problem = spool.error().message;
    timeline.is_over = true;
    return;
  }
  timeline.spool = std::make_shared<TimelineSpool>(std::move(*spool));
  if (node.is_link_closed || node.is_lost) return;
  v1::ControlRequest request;
  request.mutable_fetch_files();
  node.link->send(std::move(request));
}

bool Job::have_timelines_come() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return !node->timeline || node->timeline->is_over || node->is_lost || node->is_link_closed;
  });
}

void Job::on_files(Node& node, const v1::OutputReply& output) {
  if (!node.timeline || node.timeline->is_over) return;
  NodeTimeline& timeline = *node.timeline;
  std::uint64_t num_bytes = 0;
  for (const v1::FileChunk& chunk : output.files()) {
    num_bytes += chunk.data().size();
    if (!chunk.error().empty()) timeline.problem = chunk.name() + ": " + chunk.error();
    const auto added = timeline.spool->add(chunk);
    if (added) continue;
    // Without credit the node sends no more.
    timeline.problem = added.error().message;
    timeline.is_over = true;
    return changed();
  }
  if (num_bytes > 0 && !node.is_link_closed) node.link->grant(num_bytes);
  if (!output.files_done()) return;
  timeline.is_over = true;
  changed();
}

// In a thread of its own: heartbeats go on, or the nodes would give hvdrun up.
Task<void> Job::merge_fetched() {
  const auto work = std::make_shared<MergeWork>(loop_);
  const Nanos now = boottime_now();
  for (const auto& node : nodes_) {
    if (!node->timeline || !node->timeline->spool) continue;
    work->spools.push_back(node->timeline->spool);
    work->sources.push_back({node->host.label(), node->timeline->spool.get(),
                             node->clock.to_launcher(Nanos::zero(), now).time});
  }
  work->target = {options_.timeline.path, kFileMode & ~umask_};
  work->job_start = job_clock().start;
  WorkerPool pool(1);
  pool.submit([&loop = loop_, work] { run_merge(loop, work); });
  SteadyTime deadline = SteadyTime::max();
  while (!work->is_done.is_set() && steady_clock::now() < deadline) {
    if (is_leaving_now_ && !work->is_cancelled.exchange(true)) {
      deadline = steady_clock::now() + kCancelTime;
    }
    co_await work->is_done.wait_until(std::min(deadline, steady_clock::now() + kPatience));
  }
  if (work->is_done.is_set()) {
    tell_merged(work->result);
  } else {
    keep_timelines("hvdrun was told to leave");
  }
}

void Job::keep_timelines(const std::string& why) {
  for (const auto& node : nodes_) {
    if (node->timeline && node->timeline->problem.empty()) node->timeline->problem = why;
  }
}

void Job::tell_merged(const Result<MergedTimeline>& merged) {
  if (!merged) return keep_timelines(merged.error().message);
  for (const std::string& text : merged->warnings) write_log(LogLevel::kWarning, text);
  if (merged->num_ranks > 0) {
    return log(LogLevel::kInfo, "timeline of {} in {} ({})", counted(merged->num_ranks, "rank"),
               options_.timeline.path, size_text(merged->num_bytes));
  }
  const bool is_all_known = std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return !node->timeline || node->timeline->problem.empty();
  });
  if (!is_all_known || !merged->warnings.empty()) return;
  write_log(LogLevel::kWarning,
            fmt::format("no rank has written a timeline, because the program does not use hvdrun's "
                        "runtime; {} is left as it is (with Horovod its rank 0 writes it where it "
                        "runs)",
                        options_.timeline.path));
}

void Job::tell_unfetched() const {
  for (const auto& node : nodes_) {
    if (!node->timeline || node->timeline->problem.empty()) continue;
    write_log(
        LogLevel::kWarning,
        fmt::format("{}: not all of its timelines are in {}: {}; they stay in {} on that node",
                    node->host.label(), options_.timeline.path, node->timeline->problem,
                    node->hello->timeline_dir()));
  }
}

}  // namespace hvd
