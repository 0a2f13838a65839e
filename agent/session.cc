#include "agent/session.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "agent/own_children.h"
#include "agent/reap_process.h"
#include "agent/shim_process.h"
#include "agent/survivor_watch.h"
#include "base/log.h"
#include "base/own_program.h"

namespace hvd {
using boost::asio::posix::stream_descriptor;

Session::Session(Loop& loop, UniqueFd stream, std::string who, const Place& place)
    : loop_(loop),
      who_(std::move(who)),
      place_(place),
      began_(boottime_now()),
      stream_(std::move(stream)),
      is_job_over_(loop) {}

Task<void> Session::run(Result<std::string> line) {
  if (!line) {
    refuse(line.error().message);
    co_return;
  }
  greeting_.arguments.marker = line->substr(0, line->find(' '));  // for the answer, whatever it is
  auto greeting = parse_greeting(*line);
  if (!greeting) {
    refuse("this agent is of version " HVDRUN_VERSION
           " and does not know the greeting; use an hvdrun of that version");
    co_return;
  }
  greeting_ = std::move(*greeting);
  if (greeting_.arguments.role == AgentArguments::Role::kReap) {
    co_await run_reap();
  } else {
    co_await run_job();
  }
}

Task<void> Session::run_job() {
  auto shim = start_shim(greeting_.arguments);
  if (!shim) {
    refuse(shim.error().message);
    co_return;
  }
  Job::Config config;
  config.node_env = place_.node_env;
  config.cgroup = cgroup();
  config.on_end = [this] { is_job_over_.set(); };
  config.on_survivor = [this](const hvdrun::v1::Survivor& survivor) {
    watch_survivor(loop_, job_text(), survivor);
  };
  job_.emplace(loop_, std::move(*shim), std::move(config));
  say("ready " HVDRUN_VERSION);
  if (auto started = job_->start(std::move(stream_)); !started) {
    log(LogLevel::kError, "{}", started.error().message);
    job_->take_stream_end();
  }
  co_await is_job_over_.wait();
  end_ = job_->ending();
}

Task<void> Session::run_reap() {
  std::vector<std::string> command = {own_program()};
  command.insert(command.end(), greeting_.words.begin(), greeting_.words.end());
  command.insert(command.end(), {"--marker", greeting_.arguments.marker});
  auto reap = start_reap(command, stream_.get());
  if (!reap) {
    refuse(reap.error().message);
    co_return;
  }
  stream_.reset();
  const OwnChild child(loop_, reap->pid);
  stream_descriptor ended(loop_, reap->pidfd.release());
  co_await ended.async_wait(stream_descriptor::wait_read, kAwait);
  waitpid(reap->pid, nullptr, WNOHANG);
  end_ = "reaped";
}

void Session::refuse(const std::string& why) {
  say("error " + why);
  stream_.reset();
  end_ = why;
}

// A fresh socket has room for a line; a launcher that has gone shows by the end of its stream.
void Session::say(const std::string& words) const {
  const std::string& marker = greeting_.arguments.marker;
  const std::string line = marker.empty() ? words + "\n" : fmt::format("{} {}\n", marker, words);
  [[maybe_unused]] const ssize_t n =
      ::send(stream_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The launcher may name another folder than the agent's, or none.
CgroupPlace Session::cgroup() const {
  AgentArguments wanted = greeting_.arguments;
  wanted.wants_user_scope = false;  // a running process enters none
  return wanted.cgroup_root.empty() ? place_.cgroup : find_cgroup_place(wanted, {});
}

void Session::stop() {
  if (job_) return job_->take_stream_end();
  if (stream_.is_valid()) ::shutdown(stream_.get(), SHUT_RDWR);
}

std::string Session::summary() const {
  std::string text = who_;
  if (greeting_.arguments.node) text += ", " + job_text();
  return text + fmt::format(": {} after {}", end_, format_duration(boottime_now() - began_));
}

std::string Session::job_text() const {
  const AgentArguments& about = greeting_.arguments;
  return fmt::format("job {} node {}", about.job_id, about.node.value_or(0));
}

}  // namespace hvd
