#include "launcher/input_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/signals_blocked.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxPiece = 64 * 1024;
constexpr int kLookMs = 200;  // how often the thread looks whether it is still wanted

bool is_in_background(int fd) { return ::isatty(fd) == 1 && ::tcgetpgrp(fd) != ::getpgrp(); }

}  // namespace

class InputReader::Source {
 public:
  Source(Loop& loop, int fd, Handler handler)
      : own_(::fcntl(fd, F_DUPFD_CLOEXEC, 3)),
        handler_(std::make_shared<Handler>(std::move(handler))),
        loop_(&loop) {}

  void grant(std::uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      credit_ += bytes;
    }
    wake_.notify_one();
  }

  // Nothing is posted any more when this has returned.
  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      loop_ = nullptr;
      handler_.reset();
    }
    wake_.notify_one();
  }

  void run() {
    std::string block(kMaxPiece, '\0');
    while (const std::size_t room = wait_for_room()) {
      if (!is_readable()) continue;
      const ssize_t n = ::read(own_.get(), block.data(), room);
      const int error = n < 0 ? errno : 0;
      if (error == EINTR || error == EAGAIN || (error != 0 && is_in_background(own_.get())))
        continue;
      hand_over(block.substr(0, n > 0 ? static_cast<std::size_t>(n) : 0), n <= 0, error);
      if (n <= 0) return;
    }
  }

 private:
  // How much may be read; 0: nobody wants it any more.
  std::size_t wait_for_room() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return loop_ == nullptr || credit_ > 0; });
    return loop_ == nullptr ? 0
                            : static_cast<std::size_t>(std::min<std::uint64_t>(credit_, kMaxPiece));
  }

  // False after a while, to look again.
  [[nodiscard]] bool is_readable() const {
    if (is_in_background(own_.get())) {
      ::poll(nullptr, 0, kLookMs);
      return false;
    }
    pollfd wait{own_.get(), POLLIN, 0};
    return ::poll(&wait, 1, kLookMs) > 0;
  }

  // Under the lock, so that abandon() cannot come between the look at the loop and its use.
  void hand_over(std::string data, bool is_end, int error) {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    credit_ -= data.size();
    boost::asio::post(*loop_, [handler = std::weak_ptr(handler_), data = std::move(data), is_end,
                               error]() mutable {
      if (const auto alive = handler.lock()) (*alive)(std::move(data), is_end, error);
    });
  }

  const UniqueFd own_;  // the thread may outlive the caller's, whose number is then another file's
  std::shared_ptr<Handler> handler_;  // guarded by mutex_; locked by what was posted
  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t credit_ = 0;  // guarded by mutex_
  Loop* loop_;                // guarded by mutex_; null once nobody wants input
};

InputReader::InputReader(Loop& loop, int fd, Handler handler)
    : source_(std::make_shared<Source>(loop, fd, std::move(handler))) {
  const SignalsBlocked blocked;  // they are the loop thread's
  std::thread([source = source_] { source->run(); }).detach();
}

InputReader::~InputReader() { source_->abandon(); }

void InputReader::grant(std::uint64_t bytes) { source_->grant(bytes); }

void InputReader::stop() { source_->abandon(); }

}  // namespace hvd
