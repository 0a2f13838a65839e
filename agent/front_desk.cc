#include "agent/front_desk.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/preflight.h"
#include "agent/reap_process.h"
#include "base/log.h"
#include "base/own_program.h"
#include "base/plural.h"
#include "base/shown.h"
#include "base/stream_pair.h"

namespace hvd {
namespace {

using std::chrono::steady_clock;

constexpr auto kStartLimit = std::chrono::seconds(30);
constexpr auto kLookForTurn = std::chrono::milliseconds(200);
constexpr auto kUsersHold = std::chrono::seconds(60);
// So long a job that has gone may still be reaped by its launcher.
constexpr auto kKeepEnded = std::chrono::seconds(60);
constexpr std::string_view kDeleted = " (deleted)";

// After an upgrade that has replaced the file: the new one, which is at the same place.
std::string program_to_start() {
  std::string program = own_program();
  if (program.ends_with(kDeleted)) program.resize(program.size() - kDeleted.size());
  return program;
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(realtime_now()).count();
}

// Closed, or saying what nobody says before he was answered.
bool has_gone(int socket) {
  char byte = 0;
  const ssize_t n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

LogFields fields_of(const Visitor& visitor, std::string_view event) {
  return {{"HVDRUN_EVENT", std::string(event)},
          {"HVDRUN_CLIENT", visitor.client},
          {"HVDRUN_PEER", visitor.address}};
}

LogFields fields_of(const JobRecord& record, std::string_view event) {
  return {{"HVDRUN_EVENT", std::string(event)},
          {"HVDRUN_CLIENT", record.client},
          {"HVDRUN_PEER", record.address},
          {"HVDRUN_JOB_ID", record.job_id},
          {"HVDRUN_NODE", std::to_string(record.node)},
          {"HVDRUN_USER", record.user}};
}

std::string job_text(const JobRecord& record) {
  return fmt::format("job {} node {}", record.job_id, record.node);
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
      began_(seconds_now()) {}

Result<void> FrontDesk::open() {
  if (auto made = make_own_folder(place_.folder, 0755); !made) return made;
  if (auto made = make_own_folder(place_.folder + "/jobs", 0755); !made) return made;
  auto records = JobRecords::open(place_.folder + "/records");
  if (!records) return tl::unexpected(records.error());
  records_.emplace(std::move(*records));
  std::set<std::string> known;
  for (const JobRecord& record : live_jobs()) {
    known.insert(record.name());
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

std::vector<JobRecord> FrontDesk::live_jobs() {
  std::vector<JobRecord> live;
  const SteadyTime now = steady_clock::now();
  for (JobRecord& record : records_->read()) {
    const std::string name = record.name();
    if (starting_.contains(name) || jobs_.reach(record)) {
      live.push_back(std::move(record));
      continue;
    }
    const auto [since, is_new] = ended_.try_emplace(name, now);
    if (is_new) {
      log_with(LogLevel::kInfo, fields_of(record, "job-gone"), "{} of {} has gone",
               job_text(record), record.client);
      jobs_.clear(record);
    } else if (now - since->second > kKeepEnded) {
      records_->remove(record);
      ended_.erase(since);
    }
  }
  return live;
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

// Without systemd this process can start jobs as its own user only.
Result<std::string> FrontDesk::local_user(const Visitor& visitor, const FrontLine& line) const {
  const auto rule = config_.clients.find(visitor.client);
  if (rule == config_.clients.end())
    return make_error("user {} is none of the clients", visitor.client);
  const std::vector<std::string>& may = rule->second.run_as;
  if (line.user.empty() && !may.empty()) return may.front();
  // Where jobs can be of the agent's own user only, that is meant.
  if (line.user.empty()) return jobs_.has_systemd() ? visitor.client : std::string();
  const bool is_allowed = may.empty() ? line.user == visitor.client
                                      : std::find(may.begin(), may.end(), line.user) != may.end();
  if (is_allowed) return line.user;
  return make_error("{} may not run jobs as user {}", visitor.client, line.user);
}

// Everything that is asked before the job: who, as whom, and whether it is the time for it.
Task<Result<JobRecord>> FrontDesk::admit(const Visitor& visitor, const FrontLine& line) {
  JobRecord record;
  record.job_id = line.job_id;
  record.node = line.node;
  record.client = visitor.client;
  record.address = visitor.address;
  record.key_sum = sum_of_key(line.key);
  if (count_gpus(PreflightPaths().gpus) > 0) record.gpus = line.gpus;
  record.since = seconds_now();
  if (is_closing_) co_return make_error("the agent is stopping");
  if (const std::string why = drained(); !why.empty())
    co_return make_error("the node is drained: {}", why);
  const auto name = local_user(visitor, line);
  if (!name) co_return tl::unexpected(name.error());
  const auto user = co_await user_of(*name, config_.clients.at(visitor.client));
  if (!user) co_return tl::unexpected(user.error());
  record.user = user->name;
  record.uid = user->uid;
  if (jobs_.has_systemd()) record.unit = unit_of(record);
  if (!jobs_.has_systemd() && record.uid != geteuid()) {
    co_return make_error(
        "jobs run as the agent's own user (uid {}) here, because there is no systemd that could "
        "start "
        "them as {}",
        geteuid(), record.user);
  }
  if (auto turn = co_await wait_for_turn(visitor, line, record); !turn) {
    co_return tl::unexpected(turn.error());
  }
  co_return record;
}

// As the machine knows him; asked again after a while. No name: our own user.
Task<Result<User>> FrontDesk::user_of(std::string name, const ClientRule& rule) {
  if (name.empty()) {
    User own;
    own.name = fmt::format("uid {}", geteuid());
    own.uid = geteuid();
    if (own.uid != 0) co_return own;
    co_return make_error(
        "this agent runs as root and without systemd, so jobs would be root's; if that is meant, "
        "write run_as: root for this client in its configuration");
  }
  const SteadyTime now = steady_clock::now();
  if (now - users_asked_ > kUsersHold) users_.clear(), users_asked_ = now;
  const auto known = users_.find(name);
  if (known == users_.end()) {
    auto found = user_in_files(name);
    if (!found) found = co_await find_user(loop_, place_.env, name);
    if (!found) co_return found;
    users_.insert_or_assign(name, *found);
  }
  const User& user = users_.at(name);
  const bool is_named =
      std::find(rule.run_as.begin(), rule.run_as.end(), name) != rule.run_as.end();
  const bool is_own = !jobs_.has_systemd() && user.uid == geteuid();
  if (!is_own) {
    if (auto may = check_run_as(user, is_named); !may) co_return tl::unexpected(may.error());
  }
  co_return user;
}

std::string FrontDesk::obstacle(const JobRecord& record, std::list<Waiter>::const_iterator before) {
  const std::vector<JobRecord> live = live_jobs();
  const auto is_his = [&record](const auto& other) { return other.client == record.client; };
  const auto rule = config_.clients.find(record.client);
  const std::size_t most = rule == config_.clients.end()
                               ? config_.max_jobs
                               : rule->second.max_jobs.value_or(config_.max_jobs);
  if (live.size() >= config_.max_jobs)
    return counted(live.size(), "job") + ", the most allowed, run here";
  const auto his = static_cast<std::size_t>(std::count_if(live.begin(), live.end(), is_his));
  if (his >= most)
    return fmt::format("{} of {}, the most allowed, run here", counted(his, "job"), record.client);
  for (const JobRecord& other : live) {
    if (collide(other.gpus, record.gpus)) {
      return fmt::format("its GPUs ({}) are those of job {} of {} ({})", to_text(record.gpus),
                         other.job_id.substr(0, 8), other.client, to_text(other.gpus));
    }
  }
  for (auto other = waiting_.cbegin(); other != before; ++other) {
    if (collide(other->gpus, record.gpus)) {
      return fmt::format("job {} of {} waits for the same GPUs ({})", other->name.substr(0, 8),
                         other->client, to_text(other->gpus));
    }
  }
  return {};
}

Task<Result<void>> FrontDesk::wait_for_turn(const Visitor& visitor, const FrontLine& line,
                                            const JobRecord& record) {
  std::string why = obstacle(record, waiting_.cend());
  if (!why.empty() && !config_.waits_for_gpus) co_return make_error("{}", why);
  if (!why.empty()) {
    const auto waiter = waiting_.insert(
        waiting_.end(),
        {record.name(), record.client, record.address, record.user, record.gpus, record.since});
    log_with(LogLevel::kInfo, fields_of(record, "waiting"), "{} of {} waits: {}", job_text(record),
             visitor.text(), why);
    if (visitor.say) co_await visitor.say(fmt::format("{} wait {}\n", line.marker, shown(why)));
    boost::asio::steady_timer pause(loop_);
    while (!why.empty() && !has_gone(visitor.socket) && drained().empty() && !is_closing_) {
      pause.expires_after(kLookForTurn);
      co_await pause.async_wait(kAwait);
      why = obstacle(record, waiter);
    }
    waiting_.erase(waiter);
    if (!why.empty()) co_return make_error("gave up waiting: {}", why);
  }
  // From here on it counts, and nobody waits any more.
  const auto earlier = record_of(line);
  const bool is_here = earlier && (earlier->client != record.client || jobs_.reach(*earlier));
  if (is_here || !starting_.insert(record.name()).second) {
    co_return make_error("{} is here already", job_text(record));
  }
  co_return Result<void>();
}

Task<FrontAnswer> FrontDesk::start_job(const Visitor& visitor, FrontLine line) {
  auto record = co_await admit(visitor, line);
  if (!record) {
    ++counters_.jobs_refused;
    co_return refused(visitor, line, record.error().message);
  }
  if (visitor.say) co_await visitor.say(line.marker + " claimed\n");
  const SteadyTime began = steady_clock::now();
  Result<UniqueFd> started = make_error("nothing was started");
  if (const auto written = records_->write(*record); written) {
    started = co_await jobs_.start(*record, line.words, began + kStartLimit);
  } else {
    started = tl::unexpected(written.error());
  }
  starting_.erase(record->name());
  ended_.erase(record->name());
  if (!started) {
    ++counters_.jobs_refused;
    records_->remove(*record);
    co_return refused(visitor, line, started.error().message);
  }
  ++counters_.jobs_started;
  log_with(LogLevel::kInfo, fields_of(*record, "job-started"),
           "{} of {} runs as user {}, GPUs {}, up after {}", job_text(*record), visitor.text(),
           record->user, to_text(record->gpus), format_duration(steady_clock::now() - began));
  co_return carry(line.marker, std::move(*started));
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
    return refused(visitor, line,
                   fmt::format("the job's agent has gone: {}", reached.error().message));
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
  auto pair = make_stream_pair();
  if (!pair) return refused(visitor, line, pair.error().message);
  std::vector<std::string> words = {"reap"};
  words.insert(words.end(), line.words.begin(), line.words.end());
  words.insert(words.end(), {"--job", line.job_id, "--node", std::to_string(line.node), "--marker",
                             line.marker});
  auto reap = start_reap(words, pair->second.get());
  if (!reap) return refused(visitor, line, reap.error().message);
  boost::asio::co_spawn(loop_, keep_child(loop_, reap->pid), boost::asio::detached);
  log_with(LogLevel::kInfo, fields_of(*record, "reap"), "{} of {} is reaped", job_text(*record),
           visitor.text());
  return {{}, std::move(pair->first)};
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
      if (told_to_stop_.insert(record.name()).second) (void)tell_to_stop(record, reason);
    }
    if (live.empty() || steady_clock::now() >= limit) co_return live.size();
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(kAwait);
  }
}

}  // namespace hvd
