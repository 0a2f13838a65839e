// The addresses of a name, without ever waiting longer than one would. Thread: the loop's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/loop.h"
#include "base/status.h"
#include "launcher/transport/open_list.h"

namespace hvd {

using NameResult = boost::asio::ip::tcp::resolver::results_type;

// nullopt: the deadline passed first, or `opens` was aborted. An error says why the name has no
// address. A name service can keep its caller for half a minute and cannot be told to stop: it gets
// a thread that nobody waits for, not even the end of the loop.
[[nodiscard]] Task<std::optional<Result<NameResult>>> look_up_name(Loop& loop, OpenList& opens,
                                                                   std::string host,
                                                                   std::uint16_t port,
                                                                   SteadyTime deadline);

}  // namespace hvd
