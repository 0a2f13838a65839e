#include "runtime/tcp_mesh.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>

#include "runtime/descriptor_limits.h"

namespace hvd {
namespace {

constexpr std::uint32_t kWakeId = ~0U;
// How long the reason may take when a data connection ended: the kernel closes both at once.
constexpr std::chrono::milliseconds kReasonGrace{1000};

}  // namespace

// One note on a control connection, always whole.
struct TcpMesh::Note {
  enum class Kind : std::uint32_t { kAsk = 1, kAnswer, kGaveUp, kLeave };
  Kind kind = Kind::kAsk;
  std::int32_t rank = -1;  // kAnswer: whom the sender waits for; kGaveUp: the culprit
  CommunicatorFailure::Kind failure = CommunicatorFailure::Kind::kInternal;
  char text[503] = {};  // kGaveUp, ends with a zero
};

bool needs_data_link(int rank, int peer, int size) {
  const auto distance = static_cast<unsigned>((peer - rank + size) % size);
  return std::has_single_bit(distance) ||
         std::has_single_bit(static_cast<unsigned>(size) - distance);
}

TcpMesh::TcpMesh(int rank, std::vector<TcpPeer> peers)
    : rank_(rank),
      peers_(std::move(peers)),
      answers_(peers_.size()),
      has_left_(peers_.size(), false) {
  static_assert(sizeof(Note) == 512 && std::is_trivially_copyable_v<Note>);
}

// A close with unread bytes would reset the connection and could overtake the last note.
TcpMesh::~TcpMesh() {
  leave();
  char unread[4096];
  for (const TcpPeer& peer : peers_) {
    while (peer.control.is_valid() &&
           recv(peer.control.get(), unread, sizeof unread, MSG_DONTWAIT) > 0) {
    }
  }
}

Result<void> TcpMesh::open() {
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.is_valid() || !wake_.is_valid()) {
    return make_error("cannot make a descriptor: {}", describe_descriptor_error(errno));
  }
  const auto watch = [this](int fd, std::uint32_t id) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u32 = id;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  bool is_watched = watch(wake_.get(), kWakeId);
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].control.is_valid()) is_watched &= watch(peers_[i].control.get(), i);
  }
  if (!is_watched) return make_error("cannot watch a socket: {}", strerror(errno));
  return {};
}

int TcpMesh::data_socket(int peer) const {
  return peers_[static_cast<std::size_t>(peer)].data.get();
}

std::string TcpMesh::describe(int rank) const {
  return fmt::format("rank {} on {}", rank, peers_[static_cast<std::size_t>(rank)].host);
}

void TcpMesh::fail(CommunicatorFailure failure, int told_by) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  Note note;
  note.kind = Note::Kind::kGaveUp;
  note.rank = failure.rank;
  note.failure = failure.kind;
  const std::size_t length = std::min(failure.message.size(), sizeof note.text - 1);
  memcpy(note.text, failure.message.data(), length);
  if (told_by >= 0) failure.message += fmt::format(" (as {} found)", describe(told_by));
  failure_ = std::move(failure);
  has_failed_.store(true, std::memory_order_release);
  tell_all(note);
  shut_down();
  const std::uint64_t one = 1;
  if (wake_.is_valid() && write(wake_.get(), &one, sizeof one) < 0) return;  // it counts already
}

std::optional<CommunicatorFailure> TcpMesh::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TcpMesh::read_control() {
  epoll_event events[16];
  const int count = epoll_wait(epoll_.get(), events, 16, 0);
  for (int i = 0; i < count && !has_failed(); ++i) {
    if (events[i].data.u32 == kWakeId) continue;
    const auto peer = static_cast<int>(events[i].data.u32);
    const bool has_ended = (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (!read_notes(peer, has_ended)) lose_control(peer);
  }
}

// False at the end of the connection. has_ended: nothing comes after what is there now.
bool TcpMesh::read_notes(int peer, bool has_ended) {
  const int socket = peers_[static_cast<std::size_t>(peer)].control.get();
  while (!has_failed()) {
    Note note;
    // Only whole notes are taken out; the rest of one is on its way.
    const ssize_t there = recv(socket, &note, sizeof note, MSG_PEEK | MSG_DONTWAIT);
    if (there < 0 && errno == EINTR) continue;
    if (there < 0 && errno == EAGAIN) return true;
    if (there <= 0) return false;
    if (there < static_cast<ssize_t>(sizeof note)) return !has_ended;
    if (recv(socket, &note, sizeof note, MSG_DONTWAIT) != there) return false;
    take_note(peer, note);
  }
  return true;
}

void TcpMesh::take_note(int peer, const Note& note) {
  TcpAnswer& answer = answers_[static_cast<std::size_t>(peer)];
  switch (note.kind) {
    case Note::Kind::kAsk: {
      Note reply;
      reply.kind = Note::Kind::kAnswer;
      reply.rank = awaited_;
      const std::lock_guard lock(mutex_);
      send_note(peer, reply);
      return;
    }
    case Note::Kind::kAnswer:
      answer = {true, note.rank < size() ? note.rank : -1};
      return;
    case Note::Kind::kGaveUp:
      fail({note.failure, note.rank < size() ? note.rank : -1,
            std::string(note.text, strnlen(note.text, sizeof note.text))},
           peer);
      return;
    case Note::Kind::kLeave:
      has_left_[static_cast<std::size_t>(peer)] = true;
      return;
  }
}

void TcpMesh::lose_control(int peer) {
  const auto index = static_cast<std::size_t>(peer);
  if (has_left_[index]) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peers_[index].control.get(), nullptr);
    return;
  }
  fail(
      {CommunicatorFailure::Kind::kPeerLost, peer,
       fmt::format("{} is lost: its connections ended, so its process has died or its host is gone",
                   describe(peer))});
}

void TcpMesh::lose(int peer, SteadyTime limit) {
  const SteadyTime end = std::min(limit, std::chrono::steady_clock::now() + kReasonGrace);
  while (!has_failed() && !has_left_[static_cast<std::size_t>(peer)]) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd control{epoll_.get(), POLLIN, 0};
    poll(&control, 1, static_cast<int>(left.count()));
    read_control();
  }
  if (has_failed()) return;
  const bool has_left = has_left_[static_cast<std::size_t>(peer)];
  fail({CommunicatorFailure::Kind::kPeerLost, peer,
        has_left ? fmt::format("{} has left the communicator already", describe(peer))
                 : fmt::format("{} is lost: its data connection ended", describe(peer))});
}

void TcpMesh::ask_all() {
  std::fill(answers_.begin(), answers_.end(), TcpAnswer{});
  const std::lock_guard lock(mutex_);
  tell_all({});
}

void TcpMesh::leave() {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  Note note;
  note.kind = Note::Kind::kLeave;
  tell_all(note);
}

void TcpMesh::tell_all(const Note& note) {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_) send_note(peer, note);
  }
}

// A note that does not go out is left out: the peer has been silent for a very long time.
void TcpMesh::send_note(int peer, const Note& note) {
  const int socket = peers_[static_cast<std::size_t>(peer)].control.get();
  if (send(socket, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

// The descriptors stay open for whoever uses them on another thread now.
void TcpMesh::shut_down() {
  for (const TcpPeer& peer : peers_) {
    if (peer.control.is_valid()) shutdown(peer.control.get(), SHUT_RDWR);
    if (peer.data.is_valid()) shutdown(peer.data.get(), SHUT_RDWR);
  }
}

}  // namespace hvd
