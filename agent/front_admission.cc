// What is asked before a job is started: as whom it runs, whether it is the time for it, whose GPUs
// it takes; and its start.
#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/front_desk.h"
#include "agent/front_words.h"
#include "agent/preflight.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/shown.h"

namespace hvd {
namespace {

using std::chrono::steady_clock;

constexpr auto kStartLimit = std::chrono::seconds(30);
constexpr auto kLookForTurn = std::chrono::milliseconds(200);
constexpr auto kUsersHold = std::chrono::seconds(60);
// Each looks again every kLookForTurn; one client's may not hold up the others'.
constexpr std::ptrdiff_t kMostWaitingOfOne = 64;

// Closed, or saying what nobody says before he was answered.
bool has_gone(int socket) {
  char byte = 0;
  const ssize_t n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

}  // namespace

// Without systemd this process can start jobs as its own user only.
Result<std::string> FrontDesk::local_user(const Visitor& visitor, const FrontLine& line) const {
  const auto rule = config_.clients.find(visitor.client);
  if (rule == config_.clients.end())
    return make_error("user {} is none of the clients (clients: in the agent's configuration)",
                      visitor.client);
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
  record.since = epoch_seconds();
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
  if (auto turn = co_await take_turn(visitor, line, record, *name); !turn) {
    co_return tl::unexpected(turn.error());
  }
  co_return record;
}

// As the machine knows him; asked again after a while. No name: our own user.
Task<Result<User>> FrontDesk::user_of(std::string name, ClientRule rule) {
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
  const bool is_own = !jobs_.has_systemd() && user.uid == geteuid() && user.uid != 0;
  if (!is_own) {
    if (auto may = check_run_as(user, is_named); !may) co_return tl::unexpected(may.error());
  }
  co_return user;
}

std::size_t FrontDesk::most_jobs_of(const std::string& client) const {
  const auto rule = config_.clients.find(client);
  if (rule == config_.clients.end()) return config_.max_jobs;
  return rule->second.max_jobs.value_or(config_.max_jobs);
}

std::string FrontDesk::obstacle(const JobRecord& record, std::list<Waiter>::const_iterator before) {
  const std::vector<JobRecord> live = live_jobs();
  if (live.size() >= config_.max_jobs)
    return counted(live.size(), "job") + ", the most allowed, run here";
  const auto num_of = [&live](const std::string& client) {
    return static_cast<std::size_t>(std::count_if(
        live.begin(), live.end(), [&](const JobRecord& job) { return job.client == client; }));
  };
  if (const std::size_t his = num_of(record.client); his >= most_jobs_of(record.client))
    return fmt::format("{} of {}, the most allowed, run here", counted(his, "job"), record.client);
  for (const JobRecord& other : live) {
    if (collide(other.gpus, record.gpus)) {
      return fmt::format("its GPUs ({}) are those of job {} of {} ({})", to_text(record.gpus),
                         other.job_id.substr(0, 8), other.client, to_text(other.gpus));
    }
  }
  for (auto other = waiting_.cbegin(); other != before; ++other) {
    // Who has as many jobs as he may waits for them, and not for GPUs.
    if (!collide(other->gpus, record.gpus) || num_of(other->client) >= most_jobs_of(other->client))
      continue;
    return fmt::format("job {} of {} waits for the same GPUs ({})", other->name.substr(0, 8),
                       other->client, to_text(other->gpus));
  }
  return {};
}

Task<Result<void>> FrontDesk::wait_for_turn(const Visitor& visitor, const FrontLine& line,
                                            const JobRecord& record) {
  std::string why = obstacle(record, waiting_.cend());
  if (why.empty()) co_return Result<void>();
  if (!config_.waits_for_gpus) co_return make_error("{}", why);
  const auto is_his = [&record](const Waiter& other) { return other.client == record.client; };
  if (std::count_if(waiting_.begin(), waiting_.end(), is_his) >= kMostWaitingOfOne) {
    co_return make_error("{} jobs of {} wait here already", kMostWaitingOfOne, record.client);
  }
  const auto waiter = waiting_.insert(waiting_.end(), {record.name(), record.client, record.address,
                                                       record.user, record.gpus, record.since});
  log_with(LogLevel::kInfo, fields_of(record, "waiting"), "{} of {} waits: {}", job_text(record),
           visitor.text(), why);
  if (visitor.say) co_await visitor.say(fmt::format("{} wait {}\n", line.marker, shown(why)));
  boost::asio::steady_timer pause(loop_);
  bool is_over = false;
  while (!why.empty() && !is_over) {
    pause.expires_after(kLookForTurn);
    co_await pause.async_wait(kAwait);
    why = obstacle(record, waiter);
    is_over =
        has_gone(visitor.socket) || !waiter->killed.empty() || !drained().empty() || is_closing_;
  }
  const std::string killed = std::move(waiter->killed);
  waiting_.erase(waiter);
  if (!killed.empty()) co_return make_error("{}", killed);
  if (const std::string drain = drained(); !drain.empty()) {
    co_return make_error("the node is drained: {}", drain);
  }
  if (is_over) co_return make_error("gave up waiting{}", why.empty() ? why : ": " + why);
  co_return Result<void>();
}

Task<Result<void>> FrontDesk::take_turn(const Visitor& visitor, const FrontLine& line,
                                        const JobRecord& record, const std::string& name) {
  auto turn = co_await wait_for_turn(visitor, line, record);
  if (!turn) co_return turn;
  // The policy may be another one by now.
  const auto still = local_user(visitor, line);
  if (!still) co_return tl::unexpected(still.error());
  if (*still != name) {
    co_return make_error("jobs of {} no longer run as user {}", visitor.client, record.user);
  }
  co_return claim(record);
}

// From here on it counts, and nobody waits any more. A job is one client's, on all its nodes.
Result<void> FrontDesk::claim(const JobRecord& record) {
  for (const JobRecord& other : records_->read()) {
    if (other.job_id != record.job_id) continue;
    const bool is_here = other.node == record.node && jobs_.is_alive(other);
    if (is_here || other.client != record.client) {
      return make_error("{} is here already", job_text(record));
    }
  }
  if (!starting_.insert(record.name()).second) {
    return make_error("{} is here already", job_text(record));
  }
  auto written = records_->write(record);
  if (!written) starting_.erase(record.name());
  return written;
}

Task<FrontAnswer> FrontDesk::start_job(const Visitor& visitor, FrontLine line) {
  auto record = co_await admit(visitor, line);
  if (!record) {
    ++counters_.jobs_refused;
    co_return refused(visitor, line, record.error().message);
  }
  if (visitor.say) co_await visitor.say(line.marker + " claimed\n");
  const SteadyTime began = steady_clock::now();
  auto started = co_await jobs_.start(*record, line.words, began + kStartLimit);
  starting_.erase(record->name());
  ended_.erase(record->name());
  if (!started) {
    ++counters_.jobs_refused;
    records_->remove(*record);
    co_return refused(visitor, line, started.error().message);
  }
  ++counters_.jobs_started;
  watch_jobs();
  log_with(LogLevel::kInfo, fields_of(*record, "job-started"),
           "{} of {} runs as user {}, GPUs {}, up after {}", job_text(*record), visitor.text(),
           record->user, to_text(record->gpus), format_duration(steady_clock::now() - began));
  co_return carry(line.marker, std::move(*started));
}

}  // namespace hvd
