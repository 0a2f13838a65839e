#include "agent/fabric_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "agent/fabric.h"
#include "agent/fabric_patience.h"
#include "agent/interfaces.h"

namespace hvd {
namespace {

namespace asio = boost::asio;
namespace v1 = hvdrun::v1;
using asio::ip::tcp;

constexpr std::size_t kMaxAnswer = 256;

// Shared by the probe and its candidates, which all end before it does.
struct Probe {
  Probe(v1::FabricProbe asked, std::string id, const asio::any_io_executor& executor)
      : request(std::move(asked)),
        job_id(std::move(id)),
        end(begin + std::chrono::milliseconds(request.timeout_ms())),
        all_done(executor, SteadyTime::max()) {}
  [[nodiscard]] Nanos since_begin() const { return std::chrono::steady_clock::now() - begin; }

  const v1::FabricProbe request;
  const std::string job_id;
  const SteadyTime begin = std::chrono::steady_clock::now();
  SteadyTime end;  // sooner once a candidate has answered
  v1::FabricProbeReply reply;
  asio::steady_timer all_done;
  int num_open = 0;
};

// One address of node 0 and the connections that try it. These share it, and may outlive the
// probe's reply by a moment: nothing is written once it is decided.
struct Candidate {
  Candidate(std::shared_ptr<Probe> whole, v1::FabricProbeReply::Result* place, tcp::endpoint at,
            const asio::any_io_executor& executor)
      : probe(std::move(whole)), result(place), node0(std::move(at)), pause(executor) {}
  const std::shared_ptr<Probe> probe;
  v1::FabricProbeReply::Result* const result;
  const tcp::endpoint node0;
  std::deque<tcp::socket> sockets;
  asio::steady_timer pause;  // until the next connection
  bool is_decided = false;
  std::string last_error;  // of a connection after which another one may still succeed
};

std::string no_answer(Nanos time) {
  return fmt::format("no answer in {:.2g} s", std::chrono::duration<double>(time).count());
}

std::string connect_error(const boost::system::error_code& error) {
  if (error == asio::error::connection_refused) return "connection refused";
  return error.message();
}

struct Answer {
  std::string seen_from;  // our address as node 0 saw it
  std::string own;        // our socket's own address
  std::string error;
  bool is_final = true;  // no other connection would fare better
};

Task<Answer> ask(tcp::socket& socket, const Candidate& candidate) {
  const Probe& probe = *candidate.probe;
  if (const auto [error] = co_await socket.async_connect(candidate.node0, kAwait); error) {
    co_return Answer{{}, {}, connect_error(error), is_refusal(error, probe.since_begin())};
  }
  boost::system::error_code ignored;
  Answer answer;
  answer.own = socket.local_endpoint(ignored).address().to_string();
  co_await asio::async_write(socket, asio::buffer(probe.request.nonce()), kAwait);
  std::string line;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(line, kMaxAnswer), '\n', kAwait);
  answer.seen_from = parse_fabric_answer(line, probe.job_id);
  // Node 0 itself hangs up without a word when too many ask at once.
  answer.is_final = !line.empty();
  if (answer.seen_from.empty()) answer.error = "answered by another program";
  co_return answer;
}

void tell(const Answer& answer, v1::FabricProbeReply::Result* result) {
  result->set_error(answer.error);
  if (!answer.error.empty()) return;
  const auto interfaces = read_interfaces();
  std::string name = interface_of(answer.seen_from, interfaces);
  if (name.empty()) name = interface_of(answer.own, interfaces);
  result->set_reached(true);
  result->set_local_address(answer.seen_from);
  result->set_interface(name);
}

// What is found for a candidate stands; its other connections end.
void decide(Candidate& candidate, const Answer& answer) {
  candidate.is_decided = true;
  tell(answer, candidate.result);
  Probe& probe = *candidate.probe;
  if (candidate.result->reached()) {
    probe.end = std::min(probe.end, probe.begin + enough_after(probe.since_begin()));
  }
  boost::system::error_code ignored;
  for (tcp::socket& socket : candidate.sockets) socket.close(ignored);
  candidate.pause.cancel();
}

Task<void> connect_once(std::shared_ptr<Candidate> candidate, tcp::socket& socket) {
  const Answer answer = co_await ask(socket, *candidate);
  if (candidate->is_decided) co_return;
  if (answer.error.empty() || answer.is_final) {
    decide(*candidate, answer);
  } else {
    candidate->last_error = answer.error;
  }
}

// A new connection each second beside those that still wait for their answer.
Task<void> try_candidate(std::shared_ptr<Candidate> candidate) {
  const std::shared_ptr<Probe> probe = candidate->probe;
  const auto executor = candidate->pause.get_executor();
  while (!candidate->is_decided && std::chrono::steady_clock::now() < probe->end) {
    tcp::socket& socket = candidate->sockets.emplace_back(executor);
    asio::co_spawn(executor, connect_once(candidate, socket), asio::detached);
    if (candidate->is_decided) break;
    candidate->pause.expires_at(
        std::min(std::chrono::steady_clock::now() + kFabricNextTry, probe->end));
    co_await candidate->pause.async_wait(kAwait);
  }
  if (!candidate->is_decided) {
    const std::string& last = candidate->last_error;
    decide(*candidate, {{}, {}, last.empty() ? no_answer(probe->end - probe->begin) : last});
  }
  if (--probe->num_open == 0) probe->all_done.cancel();
}

}  // namespace

Task<v1::FabricProbeReply> probe_fabric(v1::FabricProbe probe, std::string job_id) {
  const auto executor = co_await asio::this_coro::executor;
  const auto state = std::make_shared<Probe>(std::move(probe), std::move(job_id), executor);
  // All places first: a pointer into the reply must not move while an attempt holds it.
  for (const std::string& candidate : state->request.candidates()) {
    state->reply.add_results()->set_candidate(candidate);
  }
  std::vector<std::shared_ptr<Candidate>> candidates;
  for (v1::FabricProbeReply::Result& result : *state->reply.mutable_results()) {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(result.candidate(), error);
    if (error) {
      result.set_error("not a numeric address");
      continue;
    }
    const tcp::endpoint node0(address, static_cast<std::uint16_t>(state->request.port()));
    candidates.push_back(std::make_shared<Candidate>(state, &result, node0, executor));
  }
  state->num_open = static_cast<int>(candidates.size());
  for (const auto& one : candidates) asio::co_spawn(executor, try_candidate(one), asio::detached);
  while (state->num_open > 0) co_await state->all_done.async_wait(kAwait);
  co_return std::move(state->reply);
}

}  // namespace hvd
