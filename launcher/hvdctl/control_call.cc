#include "launcher/hvdctl/control_call.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/random_bytes.h"
#include "launcher/transport/tls_dial.h"

namespace hvd {
namespace {

using boost::asio::local::stream_protocol;
using namespace boost::asio::experimental::awaitable_operators;

constexpr std::size_t kMarkerBytes = 8;

tl::unexpected<ControlFailure> unreachable(std::string why) {
  return tl::unexpected(ControlFailure{ControlFailure::Kind::kUnreachable, std::move(why)});
}

constexpr std::size_t kMostAtOnce = 256;  // connections

// One line and its answer on each of many connections.
class ControlCall {
 public:
  ControlCall(Loop& loop, const ControlReach& reach, const std::vector<NodeAddress>& nodes,
              const std::string& words)
      : loop_(loop), reach_(reach), nodes_(nodes), words_(words), answers_(nodes.size()) {}

  std::vector<Answer<std::string>> run() {
    for (std::size_t i = 0; i < std::min(nodes_.size(), kMostAtOnce); ++i) {
      boost::asio::co_spawn(loop_, ask_one_by_one(), boost::asio::detached);
    }
    loop_.restart();
    loop_.run();
    return std::move(answers_);
  }

 private:
  Task<void> ask_one_by_one() {
    while (next_ < nodes_.size()) {
      const std::size_t at = next_++;
      if (nodes_[at].host.empty()) {
        answers_[at] = co_await ask_here();
      } else {
        answers_[at] = co_await ask_there(nodes_[at]);
      }
    }
  }

  Task<Answer<std::string>> ask_here() {
    stream_protocol::socket socket(loop_);
    const auto [error] =
        co_await socket.async_connect(stream_protocol::endpoint(reach_.socket), kAwait);
    if (error) {
      co_return unreachable(fmt::format(
          "{}: {}; look whether hvd-agent serves there (systemctl status hvd-agent), or name "
          "nodes with -H",
          reach_.socket, error.message()));
    }
    co_return co_await converse(socket, deadline_from_now());
  }

  Task<Answer<std::string>> ask_there(const NodeAddress& node) {
    const SteadyTime deadline = deadline_from_now();
    TlsDial dial{loop_, opens_, reach_.context, node.host, node.port, deadline, reach_.timeout};
    auto stream = co_await dial_tls(std::move(dial));
    if (stream) co_return co_await converse(*stream, deadline);
    std::string why = stream.error().message;
    const std::string host = node.host + ": ";
    if (why.starts_with(host)) why.erase(0, host.size());
    co_return unreachable(std::move(why));
  }

  template <typename Stream>
  Task<Answer<std::string>> converse(Stream& stream, SteadyTime deadline) {
    const auto random = random_bytes(kMarkerBytes);
    if (!random) co_return unreachable(random.error().message);
    const std::string marker = "HVDCTL1-" + hex_of(*random);
    const std::string line = fmt::format("{} ctl {}\n", marker, words_);
    boost::asio::steady_timer limit(loop_, deadline);
    // Where this fails, what was said before the connection ended may still be there to read.
    co_await (boost::asio::async_write(stream, boost::asio::buffer(line), kAwait) ||
              limit.async_wait(kAwait));
    std::string text;
    const auto read =
        co_await (boost::asio::async_read_until(
                      stream, boost::asio::dynamic_buffer(text, kMostAnswerBytes), '\n', kAwait) ||
                  limit.async_wait(kAwait));
    if (read.index() != 0) {
      co_return unreachable(fmt::format("no answer within {}", format_duration(reach_.timeout)));
    }
    const auto [error, size] = std::get<0>(read);
    if (!error) co_return take_answer(std::string_view(text).substr(0, size - 1), marker);
    co_return without_answer(error, text);
  }

  [[nodiscard]] Answer<std::string> without_answer(const boost::system::error_code& error,
                                                   const std::string& text) const {
    if (error == boost::asio::error::not_found) {
      return tl::unexpected(
          ControlFailure{ControlFailure::Kind::kFaulty,
                         fmt::format("its answer is longer than {} bytes", kMostAnswerBytes)});
    }
    // With TLS 1.3 the handshake is over on our side before the node has judged our certificate.
    if (error.category() == boost::asio::error::get_ssl_category()) {
      return tl::unexpected(ControlFailure{
          ControlFailure::Kind::kRefused,
          fmt::format("our certificate {}: {}", reach_.certificate, error.message())});
    }
    if (!text.empty()) {
      return tl::unexpected(
          ControlFailure{ControlFailure::Kind::kFaulty, "the connection ended within its answer"});
    }
    return unreachable("the connection ended before an answer: " + error.message());
  }

  [[nodiscard]] SteadyTime deadline_from_now() const {
    return std::chrono::steady_clock::now() + reach_.timeout;
  }

  Loop& loop_;  // these four are not owned
  const ControlReach& reach_;
  const std::vector<NodeAddress>& nodes_;
  const std::string& words_;
  std::vector<Answer<std::string>> answers_;
  std::size_t next_ = 0;  // of nodes_, to be asked
  OpenList opens_;
};

}  // namespace

std::vector<Answer<std::string>> ask_all(Loop& loop, const ControlReach& reach,
                                         const std::vector<NodeAddress>& nodes,
                                         const std::string& words) {
  return ControlCall(loop, reach, nodes, words).run();
}

}  // namespace hvd
