#include "proto/tls_pump.h"

#include <boost/asio/write.hpp>
#include <utility>

namespace hvd {
namespace {

using boost::asio::buffer;
using boost::asio::local::stream_protocol;

constexpr std::size_t kBuffer = 1 << 16;
// How long the goodbye may take that tells the other end of a whole stream from a cut one.
constexpr auto kGoodbyeLimit = std::chrono::seconds(1);
// How long the rest of what an ended pair has said may take to one who does not read.
constexpr auto kDrainLimit = std::chrono::seconds(10);

}  // namespace

TlsPump::TlsPump(std::shared_ptr<boost::asio::ssl::context> context, Stream stream, UniqueFd socket)
    : context_(std::move(context)),
      stream_(std::move(stream)),
      socket_(stream_.get_executor()),
      in_(kBuffer),
      out_(kBuffer),
      drain_limit_(stream_.get_executor()) {
  boost::system::error_code ignored;
  socket_.assign(stream_protocol(), socket.release(), ignored);
}

std::shared_ptr<TlsPump> TlsPump::start(std::shared_ptr<boost::asio::ssl::context> context,
                                        Stream stream, UniqueFd socket) {
  auto pump = std::make_shared<TlsPump>(std::move(context), std::move(stream), std::move(socket));
  const auto keep = [pump](const std::exception_ptr&) {};
  boost::asio::co_spawn(pump->stream_.get_executor(), pump->carry_in(), keep);
  boost::asio::co_spawn(pump->stream_.get_executor(), pump->carry_out(), keep);
  boost::asio::co_spawn(pump->stream_.get_executor(), pump->watch_socket(), keep);
  return pump;
}

void TlsPump::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  drain_limit_.cancel();
  stream_.lowest_layer().close(ignored);
}

// From the network. Its end is told to the other end of the pair; what that still says goes out.
Task<void> TlsPump::carry_in() {
  while (true) {
    const auto [error, size] = co_await stream_.async_read_some(buffer(in_), kAwait);
    if (error) {
      const bool is_clean =
          error == boost::asio::error::eof || error == boost::asio::error::operation_aborted;
      if (!is_clean) why_ = error.message();
      has_alert_ = error.category() == boost::asio::error::get_ssl_category();
      break;
    }
    const auto [failed, written] =
        co_await boost::asio::async_write(socket_, buffer(in_.data(), size), kAwait);
    if (failed) break;
  }
  boost::system::error_code ignored;
  socket_.shutdown(stream_protocol::socket::shutdown_both, ignored);
}

// To the network, until the other end of the pair has said all.
Task<void> TlsPump::carry_out() {
  while (true) {
    const auto [error, size] = co_await socket_.async_read_some(buffer(out_), kAwait);
    if (error) break;
    const auto [failed, written] =
        co_await boost::asio::async_write(stream_, buffer(out_.data(), size), kAwait);
    if (failed) break;
  }
  boost::asio::steady_timer limit(stream_.get_executor(), kGoodbyeLimit);
  limit.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->close();
  });
  co_await stream_.async_shutdown(kAwait);
  limit.cancel();
  close();
}

// carry_out() sees the end of the pair only after all that was said before it.
Task<void> TlsPump::watch_socket() {
  co_await socket_.async_wait(stream_protocol::socket::wait_error, kAwait);
  if (!socket_.is_open()) co_return;
  drain_limit_.expires_after(kDrainLimit);
  const auto [cancelled] = co_await drain_limit_.async_wait(kAwait);
  if (!cancelled) close();
}

}  // namespace hvd
