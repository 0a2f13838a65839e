#include "agent/fabric_probe.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "agent/fabric.h"
#include "agent/interfaces.h"

namespace hvd {
namespace {

namespace asio = boost::asio;
namespace v1 = hvdrun::v1;
using asio::ip::tcp;

constexpr std::size_t kMaxAnswer = 256;

// Shared by the probe and its attempts, which all end before it does.
struct Probe {
  Probe(v1::FabricProbe asked, std::string id, const asio::any_io_executor& executor)
      : request(std::move(asked)), job_id(std::move(id)), all_done(executor, SteadyTime::max()) {}
  const v1::FabricProbe request;
  const std::string job_id;
  v1::FabricProbeReply reply;
  asio::steady_timer all_done;
  int num_open = 0;
};

std::string no_answer(std::int64_t timeout_ms) {
  return fmt::format("no answer in {:.2g} s", static_cast<double>(timeout_ms) / 1000);
}

std::string connect_error(const boost::system::error_code& error) {
  if (error == asio::error::connection_refused) return "connection refused";
  return error.message();
}

struct Answer {
  std::string seen_from;  // our address as node 0 saw it
  std::string own;        // our socket's own address
  std::string error;
};

Task<Answer> ask(tcp::socket& socket, const tcp::endpoint& node0, const Probe& probe) {
  if (const auto [error] = co_await socket.async_connect(node0, kAwait); error) {
    co_return Answer{{}, {}, connect_error(error)};
  }
  boost::system::error_code ignored;
  Answer answer;
  answer.own = socket.local_endpoint(ignored).address().to_string();
  co_await asio::async_write(socket, asio::buffer(probe.request.nonce()), kAwait);
  std::string line;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(line, kMaxAnswer), '\n', kAwait);
  answer.seen_from = parse_fabric_answer(line, probe.job_id);
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

Task<void> try_candidate(std::shared_ptr<Probe> probe, v1::FabricProbeReply::Result* result) {
  const auto executor = co_await asio::this_coro::executor;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(result->candidate(), error);
  if (error) {
    result->set_error("not a numeric address");
  } else {
    tcp::socket socket(executor);
    bool is_late = false;
    asio::steady_timer limit(executor, std::chrono::milliseconds(probe->request.timeout_ms()));
    limit.async_wait([&socket, &is_late](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      is_late = true;
      boost::system::error_code ignored;
      socket.close(ignored);
    });
    const tcp::endpoint node0(address, static_cast<std::uint16_t>(probe->request.port()));
    Answer answer = co_await ask(socket, node0, *probe);
    limit.cancel();
    if (is_late && !answer.error.empty()) answer.error = no_answer(probe->request.timeout_ms());
    tell(answer, result);
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
  state->num_open = state->reply.results_size();
  for (v1::FabricProbeReply::Result& result : *state->reply.mutable_results()) {
    asio::co_spawn(executor, try_candidate(state, &result), asio::detached);
  }
  while (state->num_open > 0) co_await state->all_done.async_wait(kAwait);
  co_return std::move(state->reply);
}

}  // namespace hvd
