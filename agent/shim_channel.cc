#include "agent/shim_channel.h"

#include <boost/asio/write.hpp>
#include <utility>

#include "base/log.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kReadSize = 256u << 10;

}  // namespace

ShimChannel::ShimChannel(Loop& loop, UniqueFd socket, Handlers handlers)
    : handlers_(std::move(handlers)), socket_(loop), input_(kReadSize) {
  boost::system::error_code error;
  socket_.assign(boost::asio::local::stream_protocol(), socket.release(), error);
  read();
}

bool ShimChannel::send(const v1::ToShim& message) {
  if (!is_open_) return true;
  std::string frame = encode_frame(message);
  if (frame.empty()) return false;
  output_.push_back(std::move(frame));
  if (output_.size() == 1) write();
  return true;
}

void ShimChannel::write() {
  boost::asio::async_write(socket_, boost::asio::buffer(output_.front()),
                           [this](const boost::system::error_code& error, std::size_t) {
                             if (error == boost::asio::error::operation_aborted) return;
                             output_.pop_front();
                             // A failed write is followed by the end of the read, which tells it.
                             if (!error && !output_.empty()) write();
                           });
}

void ShimChannel::read() {
  socket_.async_read_some(boost::asio::buffer(input_),
                          [this](const boost::system::error_code& error, std::size_t n) {
                            if (error == boost::asio::error::operation_aborted) return;
                            if (error) return end();
                            decoder_.append({input_.data(), n});
                            take_frames();
                            if (is_open_) read();
                          });
}

void ShimChannel::take_frames() {
  bool is_readable = true;
  while (is_open_ && is_readable) {
    const auto body = decoder_.next();
    if (!body) break;
    v1::FromShim message;
    is_readable = message.ParseFromArray(body->data(), static_cast<int>(body->size()));
    if (is_readable) handlers_.on_message(std::move(message));
  }
  if (!is_open_) return;
  handlers_.on_batch();
  if (is_readable && !decoder_.is_broken()) return;
  log(LogLevel::kError, "hvd-shim sent what is no message; giving it up");
  end();
}

void ShimChannel::end() {
  if (!is_open_) return;
  close();
  handlers_.on_end();
}

void ShimChannel::close() {
  if (!is_open_) return;
  is_open_ = false;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace hvd
