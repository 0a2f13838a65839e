#include "agent/survivor_watch.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "base/log.h"
#include "base/sys.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using boost::asio::posix::stream_descriptor;

Task<void> wait_for_it(Loop& loop, std::string job, hvdrun::v1::Survivor survivor) {
  const Nanos began = boottime_now();
  UniqueFd pidfd(sys::pidfd_open(survivor.pid()));
  if (pidfd.is_valid()) {
    stream_descriptor ended(loop, pidfd.release());
    co_await ended.async_wait(stream_descriptor::wait_read, kAwait);
  }
  log(LogLevel::kInfo, "{}: process {} ({}), which outlived SIGKILL, has gone after {}", job,
      survivor.pid(), survivor.command(), format_duration(boottime_now() - began));
}

}  // namespace

void watch_survivor(Loop& loop, std::string job, const hvdrun::v1::Survivor& survivor) {
  log(LogLevel::kWarning, "{}: process {} ({}, uid {}, state {}) outlived SIGKILL", job,
      survivor.pid(), survivor.command(), survivor.uid(), survivor.state());
  boost::asio::co_spawn(loop, wait_for_it(loop, std::move(job), survivor), boost::asio::detached);
}

}  // namespace hvd
