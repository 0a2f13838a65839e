#include "launcher/transport/boot_dialogue.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>

namespace hvd {
namespace {

using boost::asio::posix::descriptor_base;

constexpr auto kLastWords = std::chrono::milliseconds(500);

class Dialogue {
 public:
  Dialogue(Loop& loop, AgentUpload& upload, BootRequest request)
      : upload_(upload),
        request_(std::move(request)),
        scanner_(request_.marker),
        descriptor_(loop, request_.stream),
        deadline_(loop, request_.deadline) {}
  Dialogue(const Dialogue&) = delete;
  Dialogue& operator=(const Dialogue&) = delete;
  ~Dialogue() { (void)descriptor_.release(); }

  Task<BootReport> run() {
    // A write error means that the other side has ended; reading tells what it said before.
    (void)co_await send_text(request_.first_bytes);
    while (true) {
      const BootLine line = co_await next_line();
      report_.noise = scanner_.noise();
      if (line.kind == BootLine::Kind::kNone) co_return report_;
      report_.text = line.text;
      if (line.kind == BootLine::Kind::kFound) {
        report_.folder = line.text;
        continue;
      }
      if (line.kind == BootLine::Kind::kPlace) {
        if (!co_await place(line.text)) co_return report_;
        continue;
      }
      report_.state = line.kind == BootLine::Kind::kReady ? BootReport::State::kReady
                                                          : BootReport::State::kRefused;
      co_return report_;
    }
  }

 private:
  // False at the deadline.
  Task<bool> wait(descriptor_base::wait_type type) {
    using namespace boost::asio::experimental::awaitable_operators;
    if (std::chrono::steady_clock::now() >= request_.deadline) co_return false;
    const auto first =
        co_await (descriptor_.async_wait(type, kAwait) || deadline_.async_wait(kAwait));
    co_return first.index() == 0;
  }

  // kNone with the state set when no line will come.
  Task<BootLine> next_line() {
    std::array<char, 4096> buffer;
    BootLine line;
    while (line.kind == BootLine::Kind::kNone) {
      if (!co_await wait(descriptor_base::wait_read)) co_return stop(BootReport::State::kTimedOut);
      const ssize_t size =
          ::recv(request_.stream, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (size <= 0) {
        co_await await_last_words();
        co_return stop(BootReport::State::kEnded);
      }
      const std::size_t taken =
          scanner_.take(std::string_view(buffer.data(), static_cast<std::size_t>(size)), &line);
      (void)::recv(request_.stream, buffer.data(), taken, MSG_DONTWAIT);
      if (scanner_.is_too_noisy()) co_return stop(BootReport::State::kTooNoisy);
    }
    co_return line;
  }

  // The other end is closed for good once the exit status and the standard error have been told.
  Task<void> await_last_words() {
    using namespace boost::asio::experimental::awaitable_operators;
    const SteadyTime soon = std::chrono::steady_clock::now() + kLastWords;
    boost::asio::steady_timer limit(deadline_.get_executor(), std::min(soon, request_.deadline));
    co_await (descriptor_.async_wait(descriptor_base::wait_error, kAwait) ||
              limit.async_wait(kAwait));
  }

  BootLine stop(BootReport::State state) {
    report_.state = state;
    return {};
  }

  Task<bool> send_text(std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::send(request_.stream, text.data(), text.size(), MSG_NOSIGNAL);
      if (size > 0) text.remove_prefix(static_cast<std::size_t>(size));
      if (size >= 0) continue;
      if (errno != EAGAIN && errno != EINTR) co_return false;
      const bool is_in_time = co_await wait(descriptor_base::wait_write);
      if (!is_in_time) co_return false;
    }
    co_return true;
  }

  // `text` is "MACHINE KERNEL FOLDER".
  Task<bool> place(std::string_view text) {
    const std::size_t folder = text.find(' ', text.find(' ') + 1);
    report_.folder = folder == std::string_view::npos ? "" : text.substr(folder + 1);
    if (request_.on_phase) request_.on_phase(Phase::kPlaceAgent);
    const auto prepared = upload_.prepare();
    if (!prepared) {
      report_.text = prepared.error().message;
      report_.state = BootReport::State::kRefused;
      co_return false;
    }
    report_.is_placing = true;
    const bool is_in_time = co_await send_agent();
    report_.is_placing = !is_in_time;
    if (request_.on_phase) request_.on_phase(Phase::kStartAgent);
    if (!is_in_time) report_.state = BootReport::State::kTimedOut;
    co_return is_in_time;
  }

  // False at the deadline only: after a broken stream the node's last words are still to be read.
  Task<bool> send_agent() {
    std::uint64_t offset = 0;
    while (offset < upload_.size()) {
      const ssize_t size = upload_.send_some(request_.stream, offset);
      if (size > 0) offset += static_cast<std::uint64_t>(size);
      if (size == 0) co_return true;  // the file became shorter: the node sees it by its size
      if (size >= 0) continue;
      if (errno != EAGAIN && errno != EINTR) co_return true;
      const bool is_in_time = co_await wait(descriptor_base::wait_write);
      if (!is_in_time) co_return false;
    }
    co_return true;
  }

  AgentUpload& upload_;
  const BootRequest request_;
  BootScanner scanner_;
  boost::asio::posix::stream_descriptor descriptor_;
  boost::asio::steady_timer deadline_;
  BootReport report_;
};

// The last lines that a person would look at, on one line.
std::string one_line(std::string_view text) {
  constexpr std::size_t kShown = 600;
  std::string line;
  for (const char c : text.substr(text.size() - std::min(text.size(), kShown))) {
    const bool is_blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!is_blank) line += c;
    if (is_blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string quoted_words(const BootReport& report, const BootFailure& failure) {
  const std::string error_text = one_line(failure.error_text);
  const std::string noise = one_line(report.noise);
  std::string text;
  if (!error_text.empty()) text += fmt::format("; it said: {}", error_text);
  if (error_text.empty() && !noise.empty()) text += fmt::format("; it printed: {}", noise);
  return text;
}

}  // namespace

Task<BootReport> run_boot_dialogue(Loop& loop, AgentUpload& upload, BootRequest request) {
  Dialogue dialogue(loop, upload, std::move(request));
  co_return co_await dialogue.run();
}

Error explain_boot_failure(const BootReport& report, const BootFailure& failure) {
  const std::string said = quoted_words(report, failure);
  switch (report.state) {
    case BootReport::State::kRefused:
      return make_error("{}: {}", failure.host, report.text).value();
    case BootReport::State::kTimedOut:
      return make_error(ExitCode::kTimeout, "{}: no answer in {} ({}){}", failure.host,
                        format_duration(std::max(failure.budget, SteadyTime::duration::zero())),
                        phase_name(report.is_placing ? Phase::kPlaceAgent : failure.phase), said)
          .value();
    case BootReport::State::kTooNoisy:
      return make_error(
                 "{}: the log-in printed more than 64 KiB before hvd-agent started: make its start "
                 "files quiet for commands{}",
                 failure.host, said)
          .value();
    default:
      return make_error("{}: the connection ended before hvd-agent was ready ({}){}", failure.host,
                        failure.ending.empty() ? "no exit status" : failure.ending, said)
          .value();
  }
}

}  // namespace hvd
