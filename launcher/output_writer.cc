#include "launcher/output_writer.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>

#include "base/signals_blocked.h"
#include "launcher/write_queue.h"

namespace hvd {
namespace {

// One write(2): as many whole lines as fit. A file opened for appending takes them untorn even when
// other processes write to it; a pipe does so only up to PIPE_BUF, which would cost sixteen times
// the calls for a case that hvdrun's own two streams do not have.
constexpr std::size_t kPiece = 64 * 1024;

std::size_t piece_length(std::string_view bytes) {
  if (bytes.size() <= kPiece) return bytes.size();
  const std::size_t newline = bytes.rfind('\n', kPiece - 1);
  return newline == std::string_view::npos ? kPiece : newline + 1;
}

// Writes everything; the errno of what stopped it, or 0. A descriptor that somebody else has made
// non-blocking is waited for.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), piece_length(bytes));
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

bool is_same_file(int a, int b) {
  struct stat x {};
  struct stat y {};
  if (::fstat(a, &x) != 0 || ::fstat(b, &y) != 0) return false;
  return x.st_dev == y.st_dev && x.st_ino == y.st_ino && x.st_rdev == y.st_rdev;
}

}  // namespace

SinkTraits sink_traits(int stdout_fd, int stderr_fd) {
  return {::isatty(stdout_fd) == 1, ::isatty(stderr_fd) == 1, is_same_file(stdout_fd, stderr_fd)};
}

// One thread, what it has to write and where.
class OutputWriter::Sink {
 public:
  struct Item {
    bool is_stderr = false;
    std::string bytes;
    std::uint64_t batch = 0;
  };

  Sink(OutputWriter& owner, std::array<int, 2> fds)
      : fds_(fds), owner_(owner.self_), queue_(owner.loop_) {}

  void push(Item item) { queue_.push(std::move(item)); }
  void abandon() { queue_.abandon(); }

  void run() {
    Item item;
    while (queue_.next(&item)) {
      int& broken = broken_[item.is_stderr];
      const bool was_broken = broken != 0;
      if (!was_broken) broken = write_all(fds_[item.is_stderr], item.bytes);
      post_done(item, was_broken ? 0 : broken);
    }
  }

 private:
  void post_done(const Item& item, int error) {
    queue_.post([owner = owner_, is_stderr = item.is_stderr, batch = item.batch,
                 num_bytes = item.bytes.size(), error] {
      if (const auto self = owner.lock()) {
        (*self)->sink_done(is_stderr, batch, num_bytes, error);
      }
    });
  }

  const std::array<int, 2> fds_;
  std::array<int, 2> broken_{};               // errno by stream; the thread's own
  const std::weak_ptr<OutputWriter*> owner_;  // looked at on the loop only
  WriteQueue<Item> queue_;
};

OutputWriter::OutputWriter(Loop& loop, int stdout_fd, int stderr_fd, OnBroken on_broken)
    : loop_(loop),
      on_broken_(std::move(on_broken)),
      idle_(loop),
      self_(std::make_shared<OutputWriter*>(this)) {
  idle_.set();
  const std::size_t num_sinks = is_same_file(stdout_fd, stderr_fd) ? 1 : 2;
  // No signal is handled on these threads; a blocked SIGPIPE makes write(2) say EPIPE.
  const SignalsBlocked blocked;
  for (std::size_t i = 0; i < num_sinks; ++i) {
    sinks_.push_back(std::make_shared<Sink>(*this, std::array<int, 2>{stdout_fd, stderr_fd}));
    std::thread([sink = sinks_.back()] { sink->run(); }).detach();
  }
}

OutputWriter::~OutputWriter() {
  for (const auto& sink : sinks_) sink->abandon();
}

void OutputWriter::submit(OutputBatch batch, std::function<void()> on_written) {
  const std::uint64_t id = ++last_batch_;
  const std::size_t num_open = batch.empty() ? 1 : batch.size();
  batches_.emplace(id, Batch{num_open, std::move(on_written)});
  idle_.clear();
  if (batch.empty()) {
    boost::asio::post(loop_, [owner = std::weak_ptr(self_), id] {
      if (const auto self = owner.lock()) (*self)->segment_done(id, 0);
    });
  }
  for (OutputSegment& segment : batch) push(segment.is_stderr, std::move(segment.bytes), id);
}

void OutputWriter::push(bool is_stderr, std::string bytes, std::uint64_t batch) {
  num_queued_ += bytes.size();
  Sink& sink = is_stderr ? *sinks_.back() : *sinks_.front();
  sink.push({is_stderr, std::move(bytes), batch});
}

void OutputWriter::sink_done(bool is_stderr, std::uint64_t batch, std::size_t num_bytes,
                             int error) {
  // The callback may end the job, not this object.
  if (error != 0 && on_broken_) on_broken_(is_stderr, error);
  segment_done(batch, num_bytes);
}

void OutputWriter::segment_done(std::uint64_t batch, std::size_t num_bytes) {
  num_queued_ -= num_bytes;
  const auto found = batches_.find(batch);
  if (--found->second.num_open > 0) return;
  const auto on_written = std::move(found->second.on_written);
  batches_.erase(found);
  if (batches_.empty()) idle_.set();
  if (on_written) on_written();
}

Task<bool> OutputWriter::flush(SteadyTime deadline) { return idle_.wait_until(deadline); }

}  // namespace hvd
