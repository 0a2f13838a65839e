#include "base/first_line.h"

#include <errno.h>
#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <string_view>

namespace hvd {

using boost::asio::posix::stream_descriptor;

Task<Result<std::string>> await_first_line(Loop& loop, int socket, std::size_t most, Nanos limit) {
  using namespace boost::asio::experimental::awaitable_operators;
  stream_descriptor descriptor(loop, socket);
  boost::asio::steady_timer timer(loop, limit);
  std::string text;
  std::string part(most, '\0');
  bool is_whole = false;
  while (!is_whole && text.size() < most) {
    const auto first = co_await (descriptor.async_wait(stream_descriptor::wait_read, kAwait) ||
                                 timer.async_wait(kAwait));
    if (first.index() != 0) break;
    const ssize_t seen = ::recv(socket, part.data(), most - text.size(), MSG_DONTWAIT | MSG_PEEK);
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (seen <= 0) break;
    const std::string_view came(part.data(), static_cast<std::size_t>(seen));
    const std::size_t end = came.find('\n');
    is_whole = end != std::string_view::npos;
    const std::size_t size = is_whole ? end + 1 : came.size();
    if (::recv(socket, part.data(), size, MSG_DONTWAIT) != static_cast<ssize_t>(size)) break;
    text.append(part, 0, size);
  }
  (void)descriptor.release();
  if (text.empty()) co_return make_error("no word came");
  if (!is_whole) co_return make_error("what came is no line of an hvdrun");
  text.pop_back();
  co_return text;
}

}  // namespace hvd
