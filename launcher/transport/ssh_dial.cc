#include "launcher/transport/ssh_dial.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace hvd {
namespace {

constexpr auto kLookUpSlice = std::chrono::milliseconds(100);
// The kernel sends a lost packet again ever later, after half a minute in the end: then the next
// address, or a new connection whose first packets are on the way at once.
constexpr auto kTryTime = std::chrono::seconds(4);
constexpr auto kKeepAlive = std::chrono::seconds(1);

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

int look_up(const std::string& host, std::uint16_t port, int flags, Addresses* addresses) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  addresses->reset(list);
  return error;
}

// A name service can keep its caller for half a minute and cannot be told to stop: it gets a thread
// that nobody waits for. Shared by that thread and the waiting one, which may leave first.
struct LookUp {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  int error = 0;
  Addresses addresses;
};

bool is_given_up(const SshJob& job) {
  return job.is_over() || std::chrono::steady_clock::now() >= job.connect_by();
}

Result<Addresses> resolve(SshJob& job, const std::string& host, std::uint16_t port) {
  Addresses numeric;
  if (look_up(host, port, AI_NUMERICHOST, &numeric) == 0) return numeric;
  auto shared = std::make_shared<LookUp>();
  std::thread([shared, host, port] {
    Addresses addresses;
    const int error = look_up(host, port, 0, &addresses);
    const std::lock_guard lock(shared->mutex);
    shared->error = error;
    shared->addresses = std::move(addresses);
    shared->is_done = true;
    shared->done.notify_one();
  }).detach();
  std::unique_lock lock(shared->mutex);
  while (!shared->is_done && !is_given_up(job)) shared->done.wait_for(lock, kLookUpSlice);
  if (!shared->is_done) return make_error(ExitCode::kTimeout, "no answer from the name service");
  if (shared->error == 0) return std::move(shared->addresses);
  return make_error("cannot resolve the name {}: {}: check its spelling and DNS", host,
                    ::gai_strerror(shared->error));
}

// errno of one try to connect; ETIMEDOUT when its time or the job's is over, too.
int try_to_connect(SshJob& job, int socket, const addrinfo& address) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  const SshJob::Guard guard(job, socket);
  const SteadyTime end = std::min(job.connect_by(), std::chrono::steady_clock::now() + kTryTime);
  while (!job.is_over()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd entry{socket, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
  return ETIMEDOUT;
}

void set_option(int socket, int level, int name, std::int64_t number) {
  const int value = static_cast<int>(number);
  ::setsockopt(socket, level, name, &value, sizeof(value));
}

// A connection whose other end has vanished is given up after the lease: by our own bytes that
// nobody acknowledges, or, while we only wait, by the kernel's questions.
void set_options(int socket, std::chrono::nanoseconds lease) {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(lease);
  const auto idle =
      std::max(std::chrono::duration_cast<std::chrono::seconds>(lease / 3), kKeepAlive);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, limit.count());
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle.count());
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAlive.count());
}

tl::unexpected<Error> connect_error(int error, const std::string& host, std::uint16_t port) {
  if (error == ETIMEDOUT) {
    return make_error(ExitCode::kTimeout, "no answer from port {} of {}", port, host);
  }
  if (error == ECONNREFUSED) {
    return make_error("port {} of {} refuses connections: is sshd running there?", port, host);
  }
  auto result = make_error("cannot connect to port {} of {}: {}", port, host, std::strerror(error));
  result.value().may_retry = error == ECONNRESET;
  return result;
}

}  // namespace

Result<UniqueFd> dial(SshJob& job, const std::string& host, std::uint16_t port,
                      std::chrono::nanoseconds lease) {
  job.enter(Phase::kResolve);
  auto addresses = resolve(job, host, port);
  if (!addresses) return tl::unexpected(addresses.error());
  job.enter(Phase::kConnect);
  int error = ETIMEDOUT;
  for (bool is_any_silent = true; is_any_silent;) {
    is_any_silent = false;
    for (const addrinfo* entry = addresses->get(); entry; entry = entry->ai_next) {
      if (is_given_up(job)) return connect_error(ETIMEDOUT, host, port);
      UniqueFd socket(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      error = socket.is_valid() ? try_to_connect(job, socket.get(), *entry) : errno;
      if (error == ETIMEDOUT) is_any_silent = true;
      if (error != 0) continue;
      set_options(socket.get(), lease);
      return socket;
    }
  }
  return connect_error(error, host, port);
}

}  // namespace hvd
