#include "runtime/tcp_operation.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

namespace hvd {
namespace {

using std::chrono::steady_clock;

// Of one call of the kernel: what was received is reduced and passed on while it is in the cache.
constexpr std::size_t kMaxPiece = 256 * 1024;

// How long before the limit the others are asked: long enough for an answer on a busy machine.
std::chrono::milliseconds time_for_answers(std::chrono::milliseconds timeout) {
  return std::min(timeout / 4, std::chrono::milliseconds(1000));
}

template <typename Flow>
bool is_done(const Flow& flow) {
  if (flow.header_done < sizeof flow.header) return false;
  if constexpr (std::is_same_v<decltype(flow.stream), Incoming*>) {
    return flow.stream->is_received();
  } else {
    return flow.stream->is_sent();
  }
}

msghdr message_of(iovec (&parts)[2]) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = parts[1].iov_len > 0 ? 2 : 1;
  return message;
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kBarrier:
      return "barrier";
    case CollectiveKind::kFinalize:
      return "finalize";
  }
  return "an unknown operation";
}

std::string describe(const OperationHeader& header) {
  const std::string call = fmt::format("call {}", header.sequence);
  const std::string data = fmt::format("of {} {}", header.count, name_of(header.type));
  switch (header.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return fmt::format("{} ({}) {}, {}", name_of(header.kind), name_of(header.op), data, call);
    case CollectiveKind::kBroadcast:
      return fmt::format("broadcast from rank {} {}, {}", header.root, data, call);
    case CollectiveKind::kAllGather:
      return fmt::format("all-gather {}, {}", data, call);
    case CollectiveKind::kBarrier:
    case CollectiveKind::kFinalize:
      break;
  }
  return fmt::format("{}, {}", name_of(header.kind), call);
}

TcpOperation::TcpOperation(TcpMesh* mesh, const OperationHeader& header,
                           std::chrono::milliseconds timeout)
    : mesh_(mesh),
      header_(header),
      timeout_(timeout),
      deadline_(steady_clock::now() + timeout),
      ask_time_(deadline_ - time_for_answers(timeout)) {}

bool TcpOperation::run(std::uint16_t part, std::span<const ReceiveFrom> receivers,
                       std::span<const SendTo> senders) {
  begin(part, receivers, senders);
  while (!mesh_->has_failed()) {
    if (is_over()) return true;
    if (!move()) wait();
    watch_time();
  }
  return false;
}

void TcpOperation::begin(std::uint16_t part, std::span<const ReceiveFrom> receivers,
                         std::span<const SendTo> senders) {
  header_.part = part;
  in_.clear();
  out_.clear();
  for (const ReceiveFrom& receiver : receivers) {
    InFlow& flow = in_.emplace_back();
    flow.peer = receiver.peer;
    flow.socket = mesh_->data_socket(receiver.peer);
    flow.stream = receiver.stream;
  }
  for (const SendTo& sender : senders) {
    OutFlow& flow = out_.emplace_back();
    flow.peer = sender.peer;
    flow.socket = mesh_->data_socket(sender.peer);
    flow.stream = sender.stream;
    flow.header = header_;
  }
}

bool TcpOperation::is_over() const {
  return std::all_of(in_.begin(), in_.end(), [](const InFlow& flow) { return is_done(flow); }) &&
         std::all_of(out_.begin(), out_.end(), [](const OutFlow& flow) { return is_done(flow); });
}

// One piece of each stream that can move; whether one did. Sending comes first: a neighbour waits
// for it.
bool TcpOperation::move() {
  bool has_moved = false;
  for (OutFlow& flow : out_) {
    if (!flow.is_blocked && !is_done(flow)) has_moved |= send(flow);
  }
  for (InFlow& flow : in_) {
    if (!flow.is_blocked && !is_done(flow)) has_moved |= receive(flow);
  }
  return has_moved;
}

bool TcpOperation::receive(InFlow& flow) {
  const std::size_t header_left = sizeof flow.header - flow.header_done;
  const std::span<std::byte> room =
      flow.stream->is_received() ? std::span<std::byte>() : flow.stream->room();
  const std::size_t wanted = std::min(room.size(), kMaxPiece);
  iovec parts[2] = {{reinterpret_cast<std::byte*>(&flow.header) + flow.header_done, header_left},
                    {room.data(), wanted}};
  msghdr message = message_of(parts);
  const ssize_t got = header_left > 0 ? recvmsg(flow.socket, &message, 0)
                                      : recv(flow.socket, room.data(), wanted, 0);
  if (got > 0) {
    take(flow, static_cast<std::size_t>(got));
    // Less than there was room for: nothing more is there.
    flow.is_blocked = static_cast<std::size_t>(got) < header_left + wanted;
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    flow.is_blocked = errno == EAGAIN;
  } else {
    lose(flow.peer);
  }
  return false;
}

void TcpOperation::take(InFlow& flow, std::size_t bytes) {
  if (flow.header_done < sizeof flow.header) {
    const std::size_t of_header = std::min(bytes, sizeof flow.header - flow.header_done);
    flow.header_done += of_header;
    bytes -= of_header;
    if (flow.header_done < sizeof flow.header) return;
    if (memcmp(&flow.header, &header_, sizeof header_) != 0) {
      mesh_->fail(
          {CommunicatorFailure::Kind::kMismatch, flow.peer,
           fmt::format("{} is in another operation ({}) than {} ({})", mesh_->describe(flow.peer),
                       describe(flow.header), mesh_->describe(mesh_->rank()), describe(header_))});
      return;
    }
  }
  if (bytes > 0) flow.stream->received(bytes);
}

bool TcpOperation::send(OutFlow& flow) {
  const std::size_t header_left = sizeof flow.header - flow.header_done;
  std::span<const std::byte> ready = flow.stream->ready();
  ready = ready.first(std::min(ready.size(), kMaxPiece));
  if (header_left + ready.size() == 0) return false;  // waits for the receiving side
  iovec parts[2] = {{reinterpret_cast<std::byte*>(&flow.header) + flow.header_done, header_left},
                    {const_cast<std::byte*>(ready.data()), ready.size()}};
  const msghdr message = message_of(parts);
  const ssize_t sent = header_left > 0
                           ? sendmsg(flow.socket, &message, MSG_NOSIGNAL)
                           : ::send(flow.socket, ready.data(), ready.size(), MSG_NOSIGNAL);
  if (sent > 0) {
    const auto bytes = static_cast<std::size_t>(sent);
    const std::size_t of_header = std::min(bytes, header_left);
    flow.header_done += of_header;
    if (bytes > of_header) flow.stream->sent(bytes - of_header);
    flow.is_blocked = bytes < header_left + ready.size();
    return true;
  }
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
    flow.is_blocked = errno == EAGAIN;
  } else {
    lose(flow.peer);
  }
  return false;
}

void TcpOperation::lose(int peer) {
  if (!mesh_->has_failed()) mesh_->lose(peer, deadline_);
}

void TcpOperation::wait() {
  mesh_->set_awaited(awaited());
  polled_.assign(1, {mesh_->control_events(), POLLIN, 0});
  for (const InFlow& flow : in_) {
    if (!is_done(flow)) polled_.push_back({flow.socket, POLLIN, 0});
  }
  for (const OutFlow& flow : out_) {
    if (!is_done(flow) && flow.is_blocked) polled_.push_back({flow.socket, POLLOUT, 0});
  }
  const Nanos left = (has_asked_ ? deadline_ : ask_time_) - steady_clock::now();
  const auto nanos = std::max(left, Nanos(0)).count();
  const timespec limit{static_cast<time_t>(nanos / 1'000'000'000),
                       static_cast<long>(nanos % 1'000'000'000)};
  if (ppoll(polled_.data(), polled_.size(), &limit, nullptr) <= 0) return;
  if (polled_[0].revents != 0) mesh_->read_control();
  std::size_t next = 1;
  for (InFlow& flow : in_) {
    if (!is_done(flow) && polled_[next++].revents != 0) flow.is_blocked = false;
  }
  for (OutFlow& flow : out_) {
    if (!is_done(flow) && flow.is_blocked && polled_[next++].revents != 0) flow.is_blocked = false;
  }
}

void TcpOperation::watch_time() {
  if (mesh_->has_failed()) return;
  const SteadyTime now = steady_clock::now();
  if (now < ask_time_) return;
  if (!has_asked_) {
    has_asked_ = true;
    mesh_->ask_all();
  }
  if (now < deadline_) return;
  mesh_->read_control();  // answers that came while data moved
  if (!mesh_->has_failed() && !is_over()) give_up();
}

void TcpOperation::give_up() {
  const int culprit = find_culprit(mesh_->rank(), awaited(), mesh_->answers());
  const bool has_answered =
      culprit >= 0 && mesh_->answers()[static_cast<std::size_t>(culprit)].has_answered;
  const std::string what =
      fmt::format("{} {} within {}", mesh_->describe(culprit),
                  has_answered ? "is there, but its data did not come" : "gave no sign of life",
                  format_duration(timeout_));
  mesh_->fail({CommunicatorFailure::Kind::kDeadline, culprit,
               has_answered ? what : what + ": it is stopped, unreachable or busy elsewhere"});
}

int TcpOperation::awaited() const {
  for (const InFlow& flow : in_) {
    if (!is_done(flow)) return flow.peer;
  }
  for (const OutFlow& flow : out_) {
    if (!is_done(flow)) return flow.peer;
  }
  return -1;
}

}  // namespace hvd
