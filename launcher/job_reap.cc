// After a node was lost: a new connection of the same kind looks whether it is clean. It never
// holds up the stop of the other nodes, only the report.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>

#include "base/log.h"
#include "launcher/job.h"
#include "launcher/loss_text.h"
#include "launcher/reap_answer.h"

namespace hvd {
namespace {

using boost::asio::posix::descriptor_base;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr Nanos kLongest = seconds(30);
// Beyond the grace, as for the nodes that can be reached.
constexpr Nanos kAfterGrace = seconds(10);
// A node that lives takes a connection at once, however long its log-in lasts; one that has fallen
// silent hardly gets any further.
constexpr Nanos kConnect = seconds(5);
// Nobody wants to wait much longer than the time that he gave the start.
constexpr Nanos kUnstartedConnect = seconds(1);
constexpr std::size_t kMaxAnswer = std::size_t{1} << 20U;

// All that comes until the end of the stream; less at the deadline.
Task<std::string> read_to_end(Loop& loop, int stream, SteadyTime deadline) {
  using namespace boost::asio::experimental::awaitable_operators;
  boost::asio::posix::stream_descriptor descriptor(loop, stream);
  boost::asio::steady_timer limit(loop, deadline);
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < kMaxAnswer) {
    const auto first = co_await (descriptor.async_wait(descriptor_base::wait_read, kAwait) ||
                                 limit.async_wait(kAwait));
    if (first.index() != 0) break;
    const ssize_t size = ::recv(stream, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  (void)descriptor.release();
  co_return text;
}

}  // namespace

std::vector<std::string> Job::words_for_agent(const Node& node) const {
  const std::string root = env_value(environment_, "HVDRUN_CGROUP_ROOT");
  const bool is_remote = transport_for(options_, node.host) != TransportKind::kLocal;
  return agent_words(job_id_, node.index, root, is_remote);
}

void Job::reap_lost(Node& node) {
  if (node.finished) return;
  const SteadyTime now = steady_clock::now();
  const SteadyTime deadline = now + std::min(options_.grace + kAfterGrace, kLongest);
  // A connection that has timed out is closed, too, at about the same moment.
  const bool is_silent =
      !node.is_link_closed || is_silent_for(boottime_now() - node.last_heard, options_.heartbeat);
  begin_reap(node,
             {options_.grace, is_silent ? std::min(deadline, now + kConnect) : deadline, deadline});
}

// An agent that was started, and has said nothing since, may hang. It has started no rank.
void Job::reap_unstarted(Node& node) {
  const bool is_silent = !node.error || node.error->code == ExitCode::kTimeout;
  if (!is_silent || node.phases.current() < Phase::kStartAgent) return;
  const SteadyTime now = steady_clock::now();
  begin_reap(node, {Nanos::zero(), now + kUnstartedConnect, now + kConnect});
}

void Job::begin_reap(Node& node, ReapLimits limits) {
  if (node.is_reaping || is_leaving_now_) return;
  node.is_reaping = true;
  boost::asio::co_spawn(loop_, reap(node, limits), boost::asio::detached);
}

Task<void> Job::reap(Node& node, ReapLimits limits) {
  OpenRequest request;
  request.target = {node.index, node.host.name, node.host.user, node.host.port, node.host.key};
  request.deadline = limits.reached_by;
  request.connect_by = steady_clock::now() + kConnect;
  request.agent_words =
      reap_words(words_for_agent(node), limits.grace, node.hello ? node.hello->job_dir() : "");
  auto connection = co_await transport_of(node, reap_transports_).open(std::move(request));
  if (!connection) {
    node.unverified = "no connection: " + connection.error().message;
  } else {
    const UniqueFd stream = (*connection)->take_stream();
    const OpenList::Entry entry(reaps_, [&stream] { ::shutdown(stream.get(), SHUT_RDWR); });
    const std::string output = co_await read_to_end(loop_, stream.get(), limits.deadline);
    auto answer = parse_reap_answer(output, job_id_, node.index);
    if (answer) {
      node.reaped = std::move(*answer);
    } else {
      node.unverified = answer.error().message;
    }
  }
  node.is_reaping = false;
  changed();
}

// Each has its own deadline; the user may have less patience.
Task<void> Job::wait_for_reaps() {
  const auto is_under_way = [](const auto& node) { return node->is_reaping; };
  while (!is_leaving_now_ && std::any_of(nodes_.begin(), nodes_.end(), is_under_way)) {
    co_await wait_for_change(steady_clock::now() + kLongest);
  }
  for (const auto& node : nodes_) {
    if (node->is_reaping) node->unverified = "nobody waited for its answer";
  }
  reaps_.abort_all();
  reap_transports_.abort();
}

// What is known at the end of the nodes that were given ranks.
void Job::add_node_ends(ReportInput& input) const {
  for (const auto& node : nodes_) {
    const std::string host = node->host.label();
    const v1::Finished* end = node->end();
    if (!node->is_spawn_sent && !end) continue;
    if (end == nullptr) {
      input.unverified.push_back({host, node->unverified});
      continue;
    }
    if (!end->clean()) {
      input.survivors.push_back({host, {end->survivors().begin(), end->survivors().end()}});
    } else if (node->reaped) {
      input.node_lines.push_back(host + ": verified clean");
    }
    for (const std::string& remains : end->remains()) {
      input.node_lines.push_back(fmt::format("{}: {}", host, remains));
    }
  }
}

}  // namespace hvd
