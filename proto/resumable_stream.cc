#include "proto/resumable_stream.h"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <utility>
#include <vector>

namespace hvd {
namespace {

using boost::asio::buffer;
using boost::asio::local::stream_protocol;

constexpr std::size_t kReadSize = 1 << 16;
// What has come and not gone to the inner socket; more is not read.
constexpr std::size_t kMostWaiting = 1 << 18;
// So long an acknowledgement waits for more to acknowledge.
constexpr auto kAckDelay = std::chrono::milliseconds(50);

}  // namespace

ResumableStream::ResumableStream(Loop& loop, UniqueFd inner, Nanos patience, Handlers handlers)
    : loop_(loop),
      inner_(loop),
      patience_(patience),
      handlers_(std::move(handlers)),
      has_changed_(loop),
      ack_timer_(loop) {
  boost::system::error_code ignored;
  inner_.assign(stream_protocol(), inner.release(), ignored);
}

std::shared_ptr<ResumableStream> ResumableStream::start(Loop& loop, UniqueFd inner, Nanos patience,
                                                        Handlers handlers) {
  auto stream =
      std::make_shared<ResumableStream>(loop, std::move(inner), patience, std::move(handlers));
  stream->run(stream->carry_from_inner());
  stream->run(stream->carry_to_inner());
  return stream;
}

void ResumableStream::run(Task<void> task) {
  boost::asio::co_spawn(loop_, std::move(task),
                        [self = shared_from_this()](const std::exception_ptr&) {});
}

void ResumableStream::attach(UniqueFd connection) {
  if (is_over_) return;
  let_go_of_wire();
  boost::system::error_code ignored;
  wire_ = std::make_shared<Wire>(loop_);
  wire_->socket.assign(stream_protocol(), connection.release(), ignored);
  wire_->heard = std::chrono::steady_clock::now();
  engine_.connect();
  run(read_wire(wire_));
  run(write_wire(wire_));
  if (patience_ > Nanos(0)) run(watch_wire(wire_));
}

// Everybody who waits looks again.
void ResumableStream::wake() {
  has_changed_.set();
  has_changed_.clear();
}

Task<void> ResumableStream::carry_from_inner() {
  std::vector<char> bytes(kReadSize);
  while (!is_over_) {
    if (engine_.room() == 0) {
      co_await has_changed_.next();
      continue;
    }
    const auto [error, size] = co_await inner_.async_read_some(
        buffer(bytes.data(), std::min(bytes.size(), engine_.room())), kAwait);
    if (error) break;
    engine_.give({bytes.data(), size});
    wake();
  }
  engine_.give_end();
  wake();
}

Task<void> ResumableStream::carry_to_inner() {
  bool is_inner_open = true;
  while (!is_over_) {
    const std::string bytes = engine_.take_over();
    if (engine_.owes_ack() && !std::exchange(is_ack_timer_set_, true)) run(acknowledge_later());
    if (!bytes.empty()) wake();  // there is room for more
    if (!bytes.empty() && is_inner_open) {
      const auto [error, size] = co_await boost::asio::async_write(inner_, buffer(bytes), kAwait);
      is_inner_open = !error;  // nobody there listens: the rest is for nobody
    }
    if (engine_.num_waiting() > 0) continue;
    if (engine_.is_ended()) {
      boost::system::error_code ignored;
      // Nobody is there any more who would take what the inner side might still say.
      inner_.shutdown(stream_protocol::socket::shutdown_both, ignored);
      is_inner_ended_ = true;
      look_whether_over();
      co_return;
    }
    co_await has_changed_.next();
  }
}

Task<void> ResumableStream::acknowledge_later() {
  ack_timer_.expires_after(kAckDelay);
  co_await ack_timer_.async_wait(kAwait);
  is_ack_timer_set_ = false;
  engine_.acknowledge_soon();
  wake();
}

Task<void> ResumableStream::read_wire(std::shared_ptr<Wire> wire) {
  std::vector<char> bytes(kReadSize);
  while (wire == wire_) {
    if (engine_.num_waiting() > kMostWaiting) {
      co_await has_changed_.next();
      wire->heard = std::chrono::steady_clock::now();  // it is we who are slow
      continue;
    }
    const auto [error, size] = co_await wire->socket.async_read_some(buffer(bytes), kAwait);
    if (wire != wire_) co_return;
    if (error) co_return drop(wire, error.message());
    heard_ = wire->heard = std::chrono::steady_clock::now();
    if (auto taken = engine_.take_wire({bytes.data(), size}); !taken) {
      co_return fail("the stream is damaged: " + taken.error().message);
    }
    wake();
    look_whether_over();
  }
}

Task<void> ResumableStream::write_wire(std::shared_ptr<Wire> wire) {
  while (wire == wire_) {
    const std::string bytes = engine_.next_wire();
    if (bytes.empty()) {
      look_whether_over();
      if (wire == wire_) co_await has_changed_.next();
      continue;
    }
    wire->is_writing = true;
    const auto [error, size] =
        co_await boost::asio::async_write(wire->socket, buffer(bytes), kAwait);
    wire->is_writing = false;
    if (error) co_return;  // the reader takes what has come before, and then sees the end, too
  }
}

Task<void> ResumableStream::watch_wire(std::shared_ptr<Wire> wire) {
  while (wire == wire_) {
    const SteadyTime limit = wire->heard + patience_;
    if (std::chrono::steady_clock::now() >= limit) {
      co_return drop(wire, "nothing came for " + format_duration(patience_));
    }
    wire->patience.expires_at(limit);
    co_await wire->patience.async_wait(kAwait);
  }
}

void ResumableStream::let_go_of_wire() {
  if (!wire_) return;
  boost::system::error_code ignored;
  wire_->socket.close(ignored);
  wire_->patience.cancel();
  wire_.reset();
}

void ResumableStream::drop(const std::shared_ptr<Wire>& wire, const std::string& why) {
  if (wire != wire_ || is_over_) return;
  let_go_of_wire();
  wake();
  if (handlers_.on_broken) handlers_.on_broken(why);
}

// An end that has told its last acknowledgement may leave: if that is lost with the connection, the
// other end dials in vain and has all the same.
void ResumableStream::look_whether_over() {
  if (!is_inner_ended_ || !engine_.is_given_taken() || engine_.owes_ack()) return;
  if (wire_ && !wire_->is_writing) fail({});
}

void ResumableStream::fail(const std::string& why) {
  if (is_over_) return;
  close();
  if (handlers_.on_over) handlers_.on_over(why);
}

void ResumableStream::close() {
  is_over_ = true;
  let_go_of_wire();
  ack_timer_.cancel();
  boost::system::error_code ignored;
  inner_.close(ignored);
  wake();
}

}  // namespace hvd
