#include "agent/front_desk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/front_words.h"
#include "agent/reap_process.h"
#include "base/log.h"
#include "base/own_program.h"
#include "base/shown.h"
#include "base/stream_pair.h"

namespace hvd {
namespace {

using std::chrono::steady_clock;

// So long a job that has gone may still be reaped by its launcher.
constexpr auto kKeepEnded = std::chrono::seconds(60);
constexpr auto kLookAtJobs = std::chrono::seconds(1);
constexpr std::string_view kDeleted = " (deleted)";

// After an upgrade that has replaced the file: the new one, which is at the same place.
std::string program_to_start() {
  std::string program = own_program();
  if (program.ends_with(kDeleted)) program.resize(program.size() - kDeleted.size());
  return program;
}

JobPlaceConfig place_of_jobs(const FrontDesk::Place& place) {
  return {place.folder + "/jobs", program_to_start(), may_start_units(), place.env};
}

}  // namespace

FrontDesk::FrontDesk(Loop& loop, Place place, const ServiceConfig& config, RefusalLog& refusals)
    : loop_(loop),
      place_(std::move(place)),
      config_(config),
      refusals_(refusals),
      jobs_(loop, place_of_jobs(place_)),
      gpus_(loop),
      began_(epoch_seconds()) {}

Result<void> FrontDesk::open() {
  if (auto made = make_own_folder(place_.folder, 0755); !made) return made;
  if (auto locked = lock_folder(); !locked) return locked;
  if (auto made = make_own_folder(place_.folder + "/jobs", 0700); !made) return made;
  auto records = JobRecords::open(place_.folder + "/records");
  if (!records) return tl::unexpected(records.error());
  records_.emplace(std::move(*records));
  std::set<std::string> known;
  for (const JobRecord& record : live_jobs()) {
    known.insert(record.name());
    watch_jobs();
    log_with(LogLevel::kInfo, fields_of(record, "taken-up"), "{} of {} runs on as user {}",
             job_text(record), record.client, record.user);
  }
  for (const std::string& name : jobs_.names()) {
    const bool is_ended = ended_.contains(name);
    if (known.contains(name) || is_ended) continue;
    log_with(
        LogLevel::kWarning, {{"HVDRUN_EVENT", "unknown-socket"}},
        "{}/jobs/{} belongs to no job of this agent; it is left alone, and nobody is let to it",
        place_.folder, name);
  }
  return {};
}

// Two agents with the same records would take each other's jobs for dead ones.
Result<void> FrontDesk::lock_folder() {
  const std::string& path = place_.folder;
  lock_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (lock_.is_valid() && flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return make_error("cannot lock {}: {}", path, strerror(errno));
  return make_error("{} is that of another agent, which lives; stop it, or set RUNTIME_DIRECTORY",
                    path);
}

std::vector<JobRecord> FrontDesk::live_jobs() {
  std::vector<JobRecord> live;
  const SteadyTime now = steady_clock::now();
  for (JobRecord& record : records_->read()) {
    const std::string name = record.name();
    if (starting_.contains(name) || jobs_.is_alive(record)) {
      live.push_back(std::move(record));
      continue;
    }
    const auto [since, is_new] = ended_.try_emplace(name, now);
    if (is_new) {
      if (!record.is_ended) tell_gone(record);
      jobs_.clear(record);
    } else if (now - since->second > kKeepEnded) {
      // Where its agent has only stopped taking connections, the unit is still there.
      jobs_.stop_unit(record);
      records_->remove(record);
      ended_.erase(since);
    }
  }
  return live;
}

// Once: an agent that comes after this one keeps quiet about it.
void FrontDesk::tell_gone(JobRecord& record) {
  log_with(LogLevel::kInfo, fields_of(record, "job-gone"), "{} of {} has gone", job_text(record),
           record.client);
  record.is_ended = true;
  if (auto written = records_->write(record); !written) {
    log(LogLevel::kDebug, "{}", written.error().message);
  }
}

void FrontDesk::watch_jobs() {
  if (!std::exchange(is_watching_, true)) {
    boost::asio::co_spawn(loop_, look_at_jobs(), boost::asio::detached);
  }
}

Task<void> FrontDesk::look_at_jobs() {
  boost::asio::steady_timer pause(loop_);
  do {
    pause.expires_after(kLookAtJobs);
    co_await pause.async_wait(kAwait);
  } while (!live_jobs().empty());
  is_watching_ = false;
}

std::size_t FrontDesk::num_jobs() { return live_jobs().size(); }

std::optional<JobRecord> FrontDesk::record_of(const FrontLine& line) const {
  for (JobRecord& record : records_->read()) {
    if (record.job_id == line.job_id && record.node == line.node) return std::move(record);
  }
  return std::nullopt;
}

FrontAnswer FrontDesk::refused(const Visitor& visitor, const FrontLine& line,
                               const std::string& why) {
  LogFields fields = fields_of(visitor, "refused");
  if (!line.job_id.empty()) fields.push_back({"HVDRUN_JOB_ID", line.job_id});
  refusals_.write(visitor.client, fields, fmt::format("refused {}: {}", visitor.text(), why));
  return {fmt::format("{} error {}\n", line.marker, shown(why)), {}};
}

Task<FrontAnswer> FrontDesk::serve(Visitor visitor, std::string text) {
  auto line = parse_front_line(text);
  if (!line) {
    FrontLine unknown;
    unknown.marker = marker_of(text);
    co_return refused(visitor, unknown, line.error().message);
  }
  switch (line->kind) {
    case FrontLine::Kind::kJob:
      co_return co_await start_job(visitor, std::move(*line));
    case FrontLine::Kind::kResume:
      co_return resume_job(visitor, *line);
    case FrontLine::Kind::kReap:
      co_return reap_job(visitor, *line);
    case FrontLine::Kind::kControl:
      break;
  }
  co_return co_await control(visitor, *line);
}

FrontAnswer FrontDesk::carry(const std::string& marker, UniqueFd connection) {
  constexpr std::string_view kWord = "stream\n";
  [[maybe_unused]] const ssize_t n =
      ::send(connection.get(), kWord.data(), kWord.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return {marker + " ready " HVDRUN_VERSION "\n", std::move(connection)};
}

FrontAnswer FrontDesk::resume_job(const Visitor& visitor, const FrontLine& line) {
  const auto record = record_of(line);
  // Whoever has not its key learns nothing of a job, not even whether it is here.
  if (!record || record->client != visitor.client || !has_key(*record, line.key)) {
    return refused(visitor, line, fmt::format("no such job of {} is here", visitor.client));
  }
  auto reached = jobs_.reach(*record);
  if (!reached) {
    return refused(
        visitor, line,
        fmt::format("the job's agent {}: {}", jobs_.is_alive(*record) ? "is busy" : "has gone",
                    reached.error().message));
  }
  ++counters_.resumed;
  log_with(LogLevel::kInfo, fields_of(*record, "resumed"), "{} of {} is connected again",
           job_text(*record), visitor.text());
  return carry(line.marker, std::move(*reached));
}

FrontAnswer FrontDesk::reap_job(const Visitor& visitor, const FrontLine& line) {
  const auto record = record_of(line);
  if (!record || record->client != visitor.client) {
    return refused(visitor, line, fmt::format("no such job of {} is here", visitor.client));
  }
  if (reaping_.contains(record->name())) {
    return refused(visitor, line, job_text(*record) + " is being reaped already");
  }
  auto pair = make_stream_pair();
  if (!pair) return refused(visitor, line, pair.error().message);
  std::vector<std::string> words = line.words;
  words.insert(words.end(), {"--marker", line.marker});
  auto reap = start_reap(jobs_.reap_command(*record, words), pair->second.get());
  if (!reap) return refused(visitor, line, reap.error().message);
  reaping_.insert(record->name());
  boost::asio::co_spawn(loop_, keep_reap(record->name(), reap->pid), boost::asio::detached);
  log_with(LogLevel::kInfo, fields_of(*record, "reap"), "{} of {} is reaped", job_text(*record),
           visitor.text());
  return {{}, std::move(pair->first)};
}

// One at a time of each job: it looks at every process of the node, again and again.
Task<void> FrontDesk::keep_reap(std::string name, pid_t pid) {
  co_await keep_child(loop_, pid);
  reaping_.erase(name);
}

Result<void> FrontDesk::tell_to_stop(const JobRecord& record, const std::string& reason) const {
  auto reached = jobs_.reach(record);
  if (!reached) return tl::unexpected(reached.error());
  const std::string word = fmt::format("stop {}\n", shown(reason));
  [[maybe_unused]] const ssize_t n =
      ::send(reached->get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return {};
}

Task<std::size_t> FrontDesk::stop_all(std::string reason, SteadyTime limit) {
  is_closing_ = true;
  boost::asio::steady_timer pause(loop_);
  while (true) {
    const std::vector<JobRecord> live = live_jobs();
    for (const JobRecord& record : live) {
      if (!told_to_stop_.insert(record.name()).second) continue;
      (void)tell_to_stop(record, reason);
      jobs_.stop_unit(record);
    }
    if (live.empty() || steady_clock::now() >= limit) co_return live.size();
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(kAwait);
  }
}

}  // namespace hvd
