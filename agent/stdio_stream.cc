#include "agent/stdio_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace hvd {
namespace {

constexpr int kFirstFreeDescriptor = 10;  // well above 0, 1, 2 and the shim's 3

UniqueFd save_aside(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeDescriptor)); }

bool is_same_stream_socket(int a, int b) {
  struct stat first {};
  struct stat second {};
  if (fstat(a, &first) != 0 || fstat(b, &second) != 0) return false;
  int type = 0;
  socklen_t size = sizeof type;
  return S_ISSOCK(first.st_mode) && first.st_ino == second.st_ino &&
         first.st_dev == second.st_dev && getsockopt(a, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_STREAM;
}

Result<void> put_null_on_stdio() {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.is_valid()) return make_error("cannot open /dev/null: {}", strerror(errno));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (dup2(null.get(), fd) < 0) return make_error("cannot replace descriptor {}", fd);
  }
  return {};
}

bool wait_ready(int fd, short events) {
  pollfd item{fd, events, 0};
  while (poll(&item, 1, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// The other end of a descriptor may have made it non-blocking, so both ways wait by poll.
ssize_t read_some(int fd, char* data, size_t size) {
  while (true) {
    const ssize_t n = ::read(fd, data, size);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_ready(fd, POLLIN)) return -1;
  }
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      if (!wait_ready(fd, POLLOUT)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void copy_until_end(int from, int to) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = read_some(from, buffer.data(), buffer.size());
    if (n <= 0) return;
    if (!write_whole(to, {buffer.data(), static_cast<size_t>(n)})) return;
  }
}

}  // namespace

// Shared by the stream's owner and the two threads: either may be the last to leave.
struct StdioStream::Pump {
  UniqueFd input;
  UniqueFd output;
  UniqueFd inner;  // our end of the pair
  std::mutex mutex;
  std::function<void()> on_input_end;  // none once the owner has closed the stream
  std::condition_variable changed;
  bool is_flushed = false;

  void run_input() {
    copy_until_end(input.get(), inner.get());
    shutdown(inner.get(), SHUT_WR);
    const std::lock_guard lock(mutex);
    if (on_input_end) on_input_end();
  }

  void run_output() {
    copy_until_end(inner.get(), output.get());
    shutdown(inner.get(), SHUT_RDWR);  // if the reader has gone, gRPC learns it so
    shutdown(output.get(), SHUT_WR);   // no effect on a pipe
    output.reset();
    const std::lock_guard lock(mutex);
    is_flushed = true;
    changed.notify_all();
  }
};

StdioStream::StdioStream() = default;
StdioStream::StdioStream(StdioStream&&) noexcept = default;
StdioStream& StdioStream::operator=(StdioStream&&) noexcept = default;
StdioStream::~StdioStream() = default;

Result<StdioStream> StdioStream::take() {
  StdioStream stream;
  const bool is_one = is_same_stream_socket(STDIN_FILENO, STDOUT_FILENO);
  stream.input_ = save_aside(STDIN_FILENO);
  if (!is_one) stream.output_ = save_aside(STDOUT_FILENO);
  if (!stream.input_.is_valid() || (!is_one && !stream.output_.is_valid())) {
    return make_error("standard input and output must be open with --stdio");
  }
  if (auto done = put_null_on_stdio(); !done) return tl::unexpected(done.error());
  return stream;
}

Result<void> StdioStream::write(std::string_view text) {
  if (!write_whole(is_direct() ? input_.get() : output_.get(), text)) {
    return make_error("cannot write to the stream: {}", strerror(errno));
  }
  return {};
}

Result<UniqueFd> StdioStream::open(std::function<void()> on_input_end) {
  if (is_direct()) {
    const int flags = fcntl(input_.get(), F_GETFL);
    if (flags < 0 || fcntl(input_.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
      return make_error("cannot make the stream non-blocking: {}", strerror(errno));
    }
    return std::move(input_);
  }
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return make_error("cannot make a socket pair: {}", strerror(errno));
  }
  UniqueFd outer(ends[0]);
  pump_ = std::make_shared<Pump>();
  pump_->inner.reset(ends[1]);
  pump_->input = std::move(input_);
  pump_->output = std::move(output_);
  pump_->on_input_end = std::move(on_input_end);
  fcntl(outer.get(), F_SETFL, fcntl(outer.get(), F_GETFL) | O_NONBLOCK);
  std::thread([pump = pump_] { pump->run_input(); }).detach();
  std::thread([pump = pump_] { pump->run_output(); }).detach();
  return outer;
}

void StdioStream::close(std::chrono::milliseconds limit) {
  if (!pump_) return;
  std::unique_lock lock(pump_->mutex);
  pump_->on_input_end = nullptr;
  pump_->changed.wait_for(lock, limit, [this] { return pump_->is_flushed; });
}

}  // namespace hvd
