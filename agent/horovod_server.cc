#include "agent/horovod_server.h"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/limit_timer.h"

namespace hvd {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::address_v4;
using boost::asio::ip::tcp;
using boost::system::error_code;
using Parser = http::request_parser<http::string_body>;
using Response = http::response<http::string_body>;

constexpr int kBacklog = 4096;                                // the kernel lowers it to its own
constexpr auto kAcceptPause = std::chrono::milliseconds(20);  // where no descriptor is left
constexpr unsigned kHttp10 = 10;
constexpr std::size_t kMaxTarget = 2048;  // bytes

// What a request that could not be read is answered; nullopt: nothing, its client has gone or has
// not said what it wants.
std::optional<unsigned> status_of(const error_code& error, const Parser& parser, bool is_late) {
  if (is_late) return parser.is_header_done() ? std::optional(408U) : std::nullopt;
  if (error == http::error::body_limit) return 413;
  if (error == http::error::end_of_stream || error == http::error::partial_message) {
    return std::nullopt;
  }
  if (error.category() == http::make_error_code(http::error::bad_method).category()) return 400;
  return std::nullopt;
}

// A PUT whose length is not told would else be one of nothing.
bool lacks_length(const Parser& parser) {
  const auto& request = parser.get();
  return request.method() == http::verb::put && !request.has_content_length() && !request.chunked();
}

HorovodAnswer answer_to(Parser& parser, HorovodStore& store) {
  auto& request = parser.get();
  const bool is_odd = lacks_length(parser) || request.target().size() > kMaxTarget;
  if (is_odd) return {400};
  const std::string method(request.method_string());
  const std::string target(request.target());
  return store.answer(method, target, std::move(request.body()));
}

Response make_response(HorovodAnswer answer) {
  Response response(static_cast<http::status>(answer.status), kHttp10, std::move(answer.body));
  response.prepare_payload();
  return response;
}

}  // namespace

struct HorovodServer::State {
  State(Loop& owner, Limits settings)
      : loop(owner), limits(settings), acceptor(owner), has_room(owner) {}

  [[nodiscard]] bool is_wanted(const tcp::socket& socket) const {
    error_code error;
    const tcp::endpoint own = socket.local_endpoint(error);
    return !error && (!only_at || own.address() == *only_at);
  }

  Loop& loop;
  const Limits limits;
  tcp::acceptor acceptor;
  std::optional<HorovodStore> store;
  std::optional<address_v4> only_at;
  std::set<Connection*> connections;
  Event has_room;
};

struct HorovodServer::Connection {
  Connection(std::shared_ptr<State> owner, tcp::socket accepted)
      : state(std::move(owner)), socket(std::move(accepted)), limit(state->loop) {
    state->connections.insert(this);
  }
  ~Connection() {
    state->connections.erase(this);
    state->has_room.set();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // What is being waited for at the end of this time is given up.
  void limit_time() {
    is_late = false;
    limit.start(state->limits.request_time, [this] {
      is_late = true;
      error_code ignored;
      socket.cancel(ignored);
    });
  }

  const std::shared_ptr<State> state;
  tcp::socket socket;
  LimitTimer limit;
  bool is_late = false;
};

HorovodServer::HorovodServer(Loop& loop, Limits limits)
    : state_(std::make_shared<State>(loop, limits)) {}

HorovodServer::~HorovodServer() { close(); }

Result<std::uint16_t> HorovodServer::listen(const std::string& address) {
  error_code error;
  const address_v4 at = boost::asio::ip::make_address_v4(address, error);
  if (error) return make_error("Horovod's store: {} is not an IPv4 address", address);
  tcp::acceptor& acceptor = state_->acceptor;
  acceptor.open(tcp::v4(), error);
  if (!error) acceptor.bind(tcp::endpoint(at, 0), error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error) {
    error_code ignored;
    acceptor.close(ignored);
    return make_error("Horovod's store cannot listen on {}: {}", address, error.message());
  }
  const tcp::endpoint own = acceptor.local_endpoint(error);
  if (error) return make_error("Horovod's store has no port: {}", error.message());
  return own.port();
}

void HorovodServer::serve(HorovodStore store, const std::string& only_at) {
  const bool is_serving = state_->store.has_value();
  if (!state_->acceptor.is_open()) return;
  state_->store.emplace(std::move(store));
  error_code error;
  const address_v4 at = boost::asio::ip::make_address_v4(only_at, error);
  state_->only_at = error ? std::nullopt : std::optional(at);
  if (is_serving) return;
  // Whatever goes wrong for one client ends that client's coroutine and nothing else.
  boost::asio::co_spawn(state_->loop, accept(state_), [](const std::exception_ptr&) {});
}

void HorovodServer::close() {
  error_code ignored;
  state_->acceptor.close(ignored);
  state_->has_room.set();
  for (Connection* connection : state_->connections) connection->socket.close(ignored);
}

Task<void> HorovodServer::accept(std::shared_ptr<State> state) {
  while (state->acceptor.is_open()) {
    if (state->connections.size() >= state->limits.max_connections) {
      state->has_room.clear();
      co_await state->has_room.wait();
      continue;
    }
    auto [error, socket] = co_await state->acceptor.async_accept(kAwait);
    if (!state->acceptor.is_open()) co_return;
    if (error) {
      // Out of descriptors, or the client has gone already: the next one may fare better.
      boost::asio::steady_timer pause(state->loop, kAcceptPause);
      co_await pause.async_wait(kAwait);
      continue;
    }
    if (!state->is_wanted(socket)) continue;
    auto connection = std::make_shared<Connection>(state, std::move(socket));
    boost::asio::co_spawn(state->loop, talk(state, std::move(connection)),
                          [](const std::exception_ptr&) {});
  }
}

Task<void> HorovodServer::talk(std::shared_ptr<State> state,
                               std::shared_ptr<Connection> connection) {
  tcp::socket& socket = connection->socket;
  connection->limit_time();
  Parser parser;
  parser.body_limit(state->limits.max_body);
  boost::beast::flat_buffer buffer;
  const auto [error, num_read] = co_await http::async_read(socket, buffer, parser, kAwait);
  HorovodAnswer answer;
  if (error) {
    const auto status = status_of(error, parser, connection->is_late);
    if (!status) co_return;
    answer.status = *status;
  } else {
    answer = answer_to(parser, *state->store);
  }
  connection->limit_time();
  const Response response = make_response(std::move(answer));
  const auto [write_error, num_written] = co_await http::async_write(socket, response, kAwait);
  if (error && !write_error) co_await drop_rest(std::move(connection));
}

// Of a request that was answered before all of it was read: what lies unread at the end of a
// connection would make the kernel take the answer back.
Task<void> HorovodServer::drop_rest(std::shared_ptr<Connection> connection) {
  error_code error;
  connection->socket.shutdown(tcp::socket::shutdown_send, error);
  std::array<char, 4096> dropped{};
  while (!error && !connection->is_late) {
    const auto [read_error, n] =
        co_await connection->socket.async_read_some(boost::asio::buffer(dropped), kAwait);
    error = read_error;
  }
}

}  // namespace hvd
