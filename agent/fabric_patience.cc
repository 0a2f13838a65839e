#include "agent/fabric_patience.h"

#include <algorithm>
#include <boost/asio/error.hpp>

namespace hvd {
namespace {

namespace error = boost::asio::error;

// The kernel asks three times in three seconds for the owner of an address.
constexpr Nanos kAtOnce = std::chrono::seconds(1);
constexpr Nanos kOthersAtLeast = std::chrono::seconds(2);

}  // namespace

bool is_refusal(const boost::system::error_code& failure, Nanos since) {
  if (failure == error::host_unreachable) return since < kAtOnce;
  for (const auto passing : {error::timed_out, error::connection_reset, error::connection_aborted,
                             error::try_again, error::no_descriptors, error::no_buffer_space}) {
    if (failure == passing) return false;
  }
  return true;
}

Nanos enough_after(Nanos since) { return since + std::max(4 * since, kOthersAtLeast); }

}  // namespace hvd
