#include "launcher/transport/name_lookup.h"

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/signals_blocked.h"
#include "base/stream_pair.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using boost::asio::ip::tcp;
using boost::asio::local::stream_protocol;
using namespace boost::asio::experimental::awaitable_operators;

struct Found {
  boost::system::error_code error;
  NameResult addresses;
};

// Shared by the thread that asks and the loop that waits, which may leave first. The thread fills
// it, then closes its end of a pair: that wakes the loop.
struct LookUp {
  std::mutex mutex;
  std::optional<Found> found;
};

Found ask(const std::string& host, std::uint16_t port, tcp::resolver::flags flags) {
  Found found;
  boost::asio::io_context context;
  tcp::resolver resolver(context);
  found.addresses = resolver.resolve(host, std::to_string(port),
                                     flags | tcp::resolver::numeric_service, found.error);
  return found;
}

}  // namespace

Task<std::optional<Result<NameResult>>> look_up_name(Loop& loop, OpenList& opens, std::string host,
                                                     std::uint16_t port, SteadyTime deadline) {
  if (auto numeric = ask(host, port, tcp::resolver::numeric_host); !numeric.error) {
    co_return std::move(numeric.addresses);
  }
  auto pair = make_stream_pair();
  if (!pair) co_return tl::unexpected(pair.error());
  const auto shared = std::make_shared<LookUp>();
  try {
    const SignalsBlocked blocked;  // they are the loop's
    std::thread([shared, host, port, end = std::move(pair->second)] {
      Found found = ask(host, port, {});
      const std::lock_guard lock(shared->mutex);
      shared->found = std::move(found);
    }).detach();
  } catch (const std::system_error& error) {
    co_return make_error("no thread can be started to look it up: {}", error.code().message());
  }
  boost::system::error_code ignored;
  stream_protocol::socket done(loop);
  done.assign(stream_protocol(), pair->first.release(), ignored);
  const OpenList::Entry entry(opens, [&done] {
    boost::system::error_code failed;
    done.close(failed);
  });
  boost::asio::steady_timer limit(loop, deadline);
  std::array<char, 1> nothing;
  co_await (done.async_read_some(boost::asio::buffer(nothing), kAwait) || limit.async_wait(kAwait));
  const std::lock_guard lock(shared->mutex);
  if (!shared->found) co_return std::nullopt;
  if (shared->found->error) co_return make_error("{}", shared->found->error.message());
  co_return std::move(shared->found->addresses);
}

}  // namespace hvd
