#include "exporter/agent_question.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/random_bytes.h"
#include "base/shown.h"
#include "base/unique_fd.h"
#include "base/unix_address.h"

namespace hvd {
namespace {

constexpr std::size_t kLongestAnswer = 1 << 20;
constexpr std::size_t kLongestRefusal = 500;  // bytes of it that are told

// Milliseconds for poll(), rounded up; 0 when it is over.
int left_until(SteadyTime deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

Result<void> wait_for(int socket, short events, SteadyTime deadline) {
  while (true) {
    pollfd watched{socket, events, 0};
    const int n = poll(&watched, 1, left_until(deadline));
    if (n > 0) return {};
    if (n == 0) return make_error("no answer in time");
    if (errno != EINTR) return make_error("{}", std::strerror(errno));
  }
}

Result<UniqueFd> connect_to(const std::string& path, SteadyTime deadline) {
  const sockaddr_un address = unix_address(path);
  if (path.size() >= sizeof address.sun_path) return make_error("the path is too long");
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid()) return make_error("{}", std::strerror(errno));
  // A unix socket's connect never is "in progress": with a full queue it says EAGAIN.
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return make_error("{}", std::strerror(errno));
    if (left_until(deadline) == 0) return make_error("no answer in time");
    poll(nullptr, 0, 10);
  }
  return socket;
}

Result<void> send_all(int socket, std::string_view text, SteadyTime deadline) {
  while (!text.empty()) {
    if (auto ready = wait_for(socket, POLLOUT, deadline); !ready) return ready;
    const ssize_t n = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (n > 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR && errno != EAGAIN) {
      return make_error("{}", std::strerror(errno));
    }
  }
  return {};
}

Result<std::string> read_line(int socket, SteadyTime deadline) {
  std::string line;
  std::array<char, 16384> buffer;
  while (line.size() <= kLongestAnswer) {
    if (auto ready = wait_for(socket, POLLIN, deadline); !ready) {
      return tl::unexpected(ready.error());
    }
    const ssize_t n = recv(socket, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return make_error("{}", std::strerror(errno));
    if (n == 0) return make_error("the connection ended before an answer");
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    const auto end = bytes.find('\n');
    line += bytes.substr(0, end);
    if (end != std::string_view::npos && line.size() <= kLongestAnswer) return line;
  }
  return make_error("an answer of more than {} bytes", kLongestAnswer);
}

Result<std::string> take_apart(const std::string& line, const std::string& marker) {
  const std::string ok = marker + " ok ";
  if (line.starts_with(ok)) return line.substr(ok.size());
  const std::string refused = marker + " error ";
  if (line.starts_with(refused)) {
    return make_error("{}", shown(line.substr(refused.size(), kLongestRefusal)));
  }
  return make_error("an answer that is none of an hvd-agent");
}

}  // namespace

Result<std::string> ask_agent(const std::string& socket, std::string_view verb,
                              SteadyTime deadline) {
  const auto within = [&](const Error& error) {
    return tl::unexpected(error.within(fmt::format("ctl {} at {}", verb, socket)));
  };
  const auto connection = connect_to(socket, deadline);
  if (!connection) return within(connection.error());
  const auto random = random_bytes(8);
  if (!random) return within(random.error());
  const std::string marker = "HVDCTL1-" + hex_of(*random);
  if (auto sent = send_all(connection->get(), fmt::format("{} ctl {}\n", marker, verb), deadline);
      !sent) {
    return within(sent.error());
  }
  const auto line = read_line(connection->get(), deadline);
  if (!line) return within(line.error());
  auto answer = take_apart(*line, marker);
  if (!answer) return within(answer.error());
  return answer;
}

}  // namespace hvd
