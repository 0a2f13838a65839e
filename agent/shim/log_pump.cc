#include "agent/shim/log_pump.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace hvd {
namespace {

constexpr std::uint64_t kMaxChunk = 65536;
constexpr int kChunksPerRun = 16;  // then other events get their turn

}  // namespace

LogPump::LogPump(Poller& poller, std::uint64_t window, Sink sink)
    : poller_(poller), window_(window), sink_(std::move(sink)) {}

LogPump::~LogPump() {
  for (const Source& source : sources_) poller_.forget(source.pipe.get());
}

void LogPump::add(std::uint32_t rank, hvdrun::v1::Stream stream, UniqueFd pipe) {
  Source& source = sources_.emplace_back(Source{rank, stream, std::move(pipe)});
  // Edge triggered: a source stays readable until a read finds nothing, so a closed window needs no
  // re-registration and causes no wake-ups. List nodes do not move.
  poller_.watch(source.pipe.get(), EPOLLIN | EPOLLET,
                [&source](std::uint32_t) { source.is_readable = true; });
}

void LogPump::add_ended(std::uint32_t rank, hvdrun::v1::Stream stream) {
  emit_end(Source{rank, stream, UniqueFd()});
}

void LogPump::end_rank(std::uint32_t rank, Nanos deadline) {
  for (Source& source : sources_) {
    if (source.rank == rank) source.deadline = std::min(source.deadline, deadline);
  }
}

void LogPump::end_all(Nanos deadline) {
  for (Source& source : sources_) source.deadline = std::min(source.deadline, deadline);
}

void LogPump::acknowledge(std::uint64_t bytes) {
  unacknowledged_ -= std::min(bytes, unacknowledged_);
}

std::uint64_t LogPump::open_window() const {
  return is_discarding_ ? kMaxChunk : window_ - std::min(window_, unacknowledged_);
}

bool LogPump::is_busy() const {
  return open_window() > 0 && std::any_of(sources_.begin(), sources_.end(),
                                          [](const Source& s) { return s.is_readable; });
}

Nanos LogPump::next_deadline() const {
  Nanos next = Nanos::max();
  for (const Source& source : sources_) {
    if (!source.remaining) next = std::min(next, source.deadline);
  }
  return next;
}

// A background process may hold the pipe and even write on: what the pipe holds now is the end.
void LogPump::apply_deadline(Source& source, Nanos now) {
  if (source.remaining || now < source.deadline) return;
  int held = 0;
  if (ioctl(source.pipe.get(), FIONREAD, &held) != 0) held = 0;
  source.remaining = static_cast<std::uint64_t>(held);
  source.is_readable = true;
}

void LogPump::run(Nanos now) {
  for (Source& source : sources_) apply_deadline(source, now);
  std::size_t num_idle = 0;
  for (int chunks = 0; chunks < kChunksPerRun && num_idle < sources_.size();) {
    const auto source = sources_.begin();
    const bool is_ended = source->remaining == 0U;  // an end costs no window
    if (!is_ended && open_window() == 0) return;
    const Outcome outcome = source->is_readable ? read_once(*source) : Outcome::kNothingNow;
    if (outcome == Outcome::kEnded) {
      emit_end(*source);
      poller_.forget(source->pipe.get());
      sources_.erase(source);
      continue;
    }
    num_idle = outcome == Outcome::kMore ? 0 : num_idle + 1;
    chunks += outcome == Outcome::kMore ? 1 : 0;
    sources_.splice(sources_.end(), sources_, source);  // its turn is over
  }
}

LogPump::Outcome LogPump::read_once(Source& source) {
  if (source.remaining == 0U) return Outcome::kEnded;
  std::array<char, kMaxChunk> buffer;
  const std::uint64_t want =
      std::min({kMaxChunk, open_window(), source.remaining.value_or(kMaxChunk)});
  const ssize_t n = read(source.pipe.get(), buffer.data(), want);
  if (n < 0 && errno == EINTR) return Outcome::kMore;
  if (n < 0 && errno == EAGAIN && !source.remaining) {
    source.is_readable = false;
    return Outcome::kNothingNow;
  }
  if (n <= 0) return Outcome::kEnded;
  if (source.remaining) *source.remaining -= static_cast<std::uint64_t>(n);
  if (is_discarding_) return Outcome::kMore;
  unacknowledged_ += static_cast<std::uint64_t>(n);
  hvdrun::v1::LogChunk chunk;
  chunk.set_rank(source.rank);
  chunk.set_stream(source.stream);
  chunk.set_data(buffer.data(), static_cast<std::size_t>(n));
  chunk.set_time_ns(boottime_now().count());
  sink_(std::move(chunk));
  return Outcome::kMore;
}

void LogPump::emit_end(const Source& source) {
  hvdrun::v1::LogChunk chunk;
  chunk.set_rank(source.rank);
  chunk.set_stream(source.stream);
  chunk.set_eof(true);
  chunk.set_time_ns(boottime_now().count());
  sink_(std::move(chunk));
}

}  // namespace hvd
