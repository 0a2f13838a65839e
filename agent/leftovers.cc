#include "agent/leftovers.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace hvd {
namespace {

Container make_container(std::string job_id, std::uint32_t node) {
  Container container;
  container.job_id = std::move(job_id);
  container.node = node;
  container.root = getpid();
  return container;
}

// Reaps whatever has come to us; whether a child is left. The shim itself has been reaped before.
bool reap_orphans() {
  while (true) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0 && errno != EINTR) return false;
  }
}

}  // namespace

Leftovers::Leftovers(Loop& loop, std::string job_id, std::uint32_t node)
    : container_(make_container(std::move(job_id), node)), timer_(loop) {}

void Leftovers::sweep(Nanos limit, Done done) {
  deadline_ = boottime_now() + limit;
  done_ = std::move(done);
  step();
}

void Leftovers::step() {
  const Nanos now = boottime_now();
  const Sweep::Step result = sweep_.step(container_, reap_orphans(), now);
  if (result.is_empty) return done_({});
  if (now >= deadline_) return done_(find_members(container_));
  timer_.expires_after(std::max(result.next - now, Nanos(0)));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) step();
  });
}

}  // namespace hvd
