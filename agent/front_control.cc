// What hvdctl and hvd-exporter ask: the node and its jobs, a job's end, no more jobs.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/front_desk.h"
#include "agent/preflight.h"
#include "base/disk_file.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/shown.h"

namespace hvd {
namespace {

using nlohmann::json;

constexpr int kShownDigits = 8;  // of the id of another's job
constexpr std::string_view kNoReason = "no reason was given";

// Bytes of a stranger in it never make it throw.
std::string dump(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string joined(std::vector<std::string>::const_iterator from,
                   std::vector<std::string>::const_iterator to) {
  std::string text;
  for (; from != to; ++from) text += (text.empty() ? "" : " ") + *from;
  return text;
}

std::uint64_t resident_bytes() {
  const std::string text = read_small_file("/proc/self/statm");
  const std::size_t second = text.find(' ');
  if (second == std::string::npos) return 0;
  return std::strtoull(text.c_str() + second, nullptr, 10) *
         static_cast<unsigned long>(getpagesize());
}

std::size_t num_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

bool FrontDesk::is_admin(const Visitor& visitor) const {
  return visitor.local == Visitor::Local::kOwner || config_.admins.contains(visitor.client);
}

std::string FrontDesk::drained() const {
  const std::string path = place_.folder + "/drained";
  if (access(path.c_str(), F_OK) != 0) return {};
  const std::string reason = read_small_file(path);
  return reason.empty() ? std::string(kNoReason) : shown(reason);
}

Task<FrontAnswer> FrontDesk::control(const Visitor& visitor, const FrontLine& line) {
  const std::string& verb = line.words.front();
  Result<std::string> answer = make_error(
      "there is no {}; it is status, kill, drain, undrain, gpus "
      "or counters",
      shown(verb));
  if (verb == "status") answer = status(visitor);
  if (verb == "counters") answer = counters_text();
  if (verb == "kill") answer = kill_jobs(visitor, line);
  if (verb == "drain" || verb == "undrain") answer = drain(visitor, line);
  if (verb == "gpus") {
    if (is_admin(visitor) || visitor.local == Visitor::Local::kObserver) {
      answer = co_await gpus_.ask(place_.env);
    } else {
      answer = make_error("{} is no admin", visitor.client);
    }
  }
  if (!answer) co_return refused(visitor, line, answer.error().message);
  co_return FrontAnswer{fmt::format("{} ok {}\n", line.marker, *answer), {}};
}

// The id of another's job is told in part: who knows all of it could take its place on a node that
// it has not reached yet.
std::string FrontDesk::status(const Visitor& visitor) {
  json jobs = json::array();
  const bool sees_all = is_admin(visitor);
  const auto add = [&](std::string_view name, const auto& job, std::string_view state,
                       const std::string& unit) {
    const std::size_t dash = name.rfind('-');
    std::string id(name.substr(0, dash));
    const bool is_his = sees_all || job.client == visitor.client;
    if (!is_his) std::fill(id.begin() + kShownDigits, id.end(), '0');
    jobs.push_back({{"job", id},
                    {"index", std::stoul(std::string(name.substr(dash + 1)))},
                    {"client", job.client},
                    {"user", job.user},
                    {"from", job.address},
                    {"state", state},
                    {"since", job.since},
                    {"gpus", to_text(job.gpus)},
                    {"unit", is_his ? unit : std::string()}});
  };
  for (const JobRecord& record : live_jobs()) {
    add(record.name(), record, starting_.contains(record.name()) ? "starting" : "running",
        record.unit);
  }
  for (const Waiter& waiter : waiting_) add(waiter.name, waiter, "waiting", {});
  return dump({{"node", host_name()},
               {"version", HVDRUN_VERSION},
               {"pid", getpid()},
               {"started", began_},
               {"draining", drained()},
               {"max_jobs", config_.max_jobs},
               {"num_gpus", count_gpus(PreflightPaths().gpus)},
               {"jobs", jobs}});
}

std::string FrontDesk::counters_text() const {
  json counters = {{"jobs_started", counters_.jobs_started},
                   {"jobs_refused", counters_.jobs_refused},
                   {"connections", counters_.connections},
                   {"connections_refused", counters_.connections_refused},
                   {"resumed", counters_.resumed},
                   {"rss_bytes", resident_bytes()},
                   {"descriptors", num_descriptors()}};
  if (counters_.certificate_until) counters["certificate_until"] = *counters_.certificate_until;
  return dump(counters);
}

Result<void> FrontDesk::check_may_kill(const Visitor& visitor, const std::string& job,
                                       const std::string& client) const {
  if (is_admin(visitor) || client == visitor.client) return {};
  return make_error("job {} is {}'s, and {} is no admin", job, client, visitor.client);
}

Result<std::string> FrontDesk::kill_jobs(const Visitor& visitor, const FrontLine& line) {
  if (line.words.size() != 2 || !is_job_id(line.words[1])) {
    return make_error("kill which job? Give its 32 digits");
  }
  const std::string& job = line.words[1];
  const std::string word = fmt::format("the job was killed by {} (hvdctl kill)", visitor.client);
  const auto log_kill = [&](const std::string& client) {
    log_with(LogLevel::kInfo,
             {{"HVDRUN_EVENT", "kill"}, {"HVDRUN_CLIENT", visitor.client}, {"HVDRUN_JOB_ID", job}},
             "{} stops job {} of {}", visitor.text(), job, client);
  };
  std::size_t num_stopped = 0;
  for (const JobRecord& record : live_jobs()) {
    if (record.job_id != job) continue;
    if (auto may = check_may_kill(visitor, job, record.client); !may) {
      return tl::unexpected(may.error());
    }
    log_kill(record.client);
    const auto told = tell_to_stop(record, word);
    jobs_.stop_unit(record);
    if (told) ++num_stopped;
  }
  for (Waiter& waiter : waiting_) {
    if (!waiter.name.starts_with(job)) continue;
    if (auto may = check_may_kill(visitor, job, waiter.client); !may) {
      return tl::unexpected(may.error());
    }
    log_kill(waiter.client);
    waiter.killed = word;
    ++num_stopped;
  }
  return dump({{"stopped", num_stopped}});
}

Result<std::string> FrontDesk::drain(const Visitor& visitor, const FrontLine& line) {
  if (!is_admin(visitor)) return make_error("{} is no admin", visitor.client);
  const std::string path = place_.folder + "/drained";
  if (line.words.front() == "undrain") {
    unlink(path.c_str());
  } else {
    const std::string reason = joined(line.words.begin() + 1, line.words.end());
    if (const int why = replace_file(path, reason, 0644); why != 0) {
      return make_error("cannot write {}: {}", path, strerror(why));
    }
  }
  log_with(LogLevel::kInfo,
           {{"HVDRUN_EVENT", line.words.front()}, {"HVDRUN_CLIENT", visitor.client}}, "{}: {}{}",
           visitor.text(), line.words.front(), drained().empty() ? "" : ": " + drained());
  return dump({{"draining", drained()}});
}

}  // namespace hvd
