#include "runtime/tcp_connect.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/random_bytes.h"
#include "runtime/descriptor_limits.h"
#include "runtime/tcp_communicator.h"
#include "runtime/tcp_handshake.h"
#include "runtime/tcp_mesh.h"
#include "runtime/tcp_socket.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMinNonce = 16;
// Of connections that others made and that have proven nothing yet.
constexpr std::size_t kMaxStrangers = 256;
constexpr std::chrono::seconds kStrangerTime{5};
constexpr milliseconds kRedialPause{50};

// This close to the limit a rank that goes away has most likely reached its own: it is not the one
// to name.
milliseconds unwatched_end(milliseconds timeout) {
  return std::min(timeout / 4, milliseconds(500));
}

std::string address_key(int rank) { return fmt::format("tcp_communicator/{}", rank); }

// Where a rank can be reached.
struct Destination {
  TcpAddress address;
  std::string local_name;  // of its unix socket; "-" without
  std::string host;        // its name, for people
};

// "127.0.0.1 40000 hvd-f00d node2".
std::string text_of(const Destination& destination) {
  return fmt::format("{} {} {} {}", destination.address.host, destination.address.port,
                     destination.local_name, destination.host);
}

std::optional<Destination> parse_destination(const std::string& text) {
  Destination found;
  std::istringstream words(text);
  words >> found.address.host >> found.address.port >> found.local_name >> std::ws;
  std::getline(words, found.host);
  if (words.fail()) return std::nullopt;
  return found;
}

// Nobody else has it.
Result<std::string> unique_name() {
  return random_bytes(16).map([](const std::string& bytes) { return "hvd-" + hex_of(bytes); });
}

// One connection on its way.
struct Attempt {
  TcpHandshake handshake;
  SteadyTime end;  // of a stranger
};
// A dial that broke and is made again.
struct Redial {
  int peer;
  TcpChannel channel;
  SteadyTime when;
};

class Meeting {
 public:
  Meeting(TcpRendezvous& rendezvous, const TcpSettings& settings, milliseconds timeout)
      : rendezvous_(rendezvous),
        settings_(settings),
        timeout_(timeout),
        deadline_(steady_clock::now() + timeout),
        peers_(static_cast<std::size_t>(settings.size)),
        destinations_(static_cast<std::size_t>(settings.size)) {
    identity_.rank = static_cast<std::uint32_t>(settings.rank);
    identity_.size = static_cast<std::uint32_t>(settings.size);
    identity_.generation = settings.generation;
    identity_.host = settings.host;
    identity_.nonce = settings.nonce;
    peers_[identity_.rank].host = settings.host;
  }

  Result<std::vector<TcpPeer>> run() {
    auto begun = publish();
    for (int peer = 0; begun && peer < settings_.rank; ++peer) begun = look_up(peer);
    if (!begun) return tl::unexpected(begun.error());
    while (!is_complete()) {
      auto stepped = step();
      if (!stepped) return tl::unexpected(stepped.error());
    }
    return std::move(peers_);
  }

  [[nodiscard]] milliseconds time_left() const {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now());
    return std::max(left, milliseconds(0));
  }

 private:
  Result<void> publish() {
    auto listening = listen_on(settings_.listen_address);
    if (!listening) return tl::unexpected(listening.error());
    listener_ = std::move(listening->socket);
    Destination here{{settings_.listen_address, listening->port}, "-", settings_.host};
    if (settings_.has_local_sockets) {
      auto name = unique_name();
      if (!name) return tl::unexpected(name.error());
      here.local_name = std::move(*name);
      auto local = listen_on_local(here.local_name);
      if (!local) return tl::unexpected(local.error());
      local_listener_ = std::move(*local);
    }
    return rendezvous_.put(address_key(settings_.rank), text_of(here), time_left());
  }

  Result<void> look_up(int peer) {
    const auto value = rendezvous_.get(address_key(peer), time_left());
    if (!value) {
      return tl::unexpected(
          value.error().within(fmt::format("rank {} did not leave its address", peer)));
    }
    auto found = parse_destination(*value);
    if (!found) return make_error("rank {} left an address that cannot be read", peer);
    peers_[static_cast<std::size_t>(peer)].host = found->host;
    destinations_[static_cast<std::size_t>(peer)] = std::move(*found);
    auto dialled = dial(peer, TcpChannel::kControl);
    if (!dialled || !needs_data_link(settings_.rank, peer, settings_.size)) return dialled;
    return dial(peer, TcpChannel::kData);
  }

  Result<void> dial(int peer, TcpChannel channel) {
    const Destination& destination = destinations_[static_cast<std::size_t>(peer)];
    Result<UniqueFd> socket;
    if (channel == TcpChannel::kData && settings_.has_local_sockets) {
      socket = dial_local(destination.local_name);
    }
    if (!socket->is_valid()) socket = start_dial(destination.address);
    if (!socket) return tl::unexpected(socket.error().within(describe(peer)));
    attempts_.push_back({TcpHandshake::dial(std::move(*socket), &identity_,
                                            static_cast<std::uint32_t>(peer), channel),
                         deadline_});
    return {};
  }

  // Waits for whatever comes next and deals with all of it.
  Result<void> step() {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0},
                                  {local_listener_.get(), POLLIN, 0}};  // -1 is passed over
    for (const Attempt& attempt : attempts_) {
      polled.push_back({attempt.handshake.socket(), attempt.handshake.events(), 0});
    }
    for (const TcpPeer& peer : peers_) {
      if (!is_watching_peers()) break;
      if (peer.control.is_valid()) polled.push_back({peer.control.get(), POLLRDHUP, 0});
    }
    poll(polled.data(), polled.size(), static_cast<int>(poll_time().count()));
    const SteadyTime now = steady_clock::now();
    if (now >= deadline_) return missing();
    if (is_watching_peers()) {
      if (auto lost = lost_peer()) return worker_error(WorkerExit::kPeerLost, "{}", *lost);
    }
    auto done = advance_all(now);
    if (done) done = redial(now);
    if (done && polled[0].revents != 0) done = accept_all(listener_.get(), now);
    if (done && polled[1].revents != 0) done = accept_all(local_listener_.get(), now);
    return done;
  }

  [[nodiscard]] milliseconds poll_time() const {
    SteadyTime next = deadline_;
    for (const Attempt& attempt : attempts_) next = std::min(next, attempt.end);
    for (const Redial& redial : redials_) next = std::min(next, redial.when);
    const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
    return std::max(left, milliseconds(0));
  }

  Result<void> advance_all(SteadyTime now) {
    std::vector<Attempt> going_on;
    for (Attempt& attempt : attempts_) {
      switch (attempt.handshake.advance()) {
        case TcpHandshake::State::kGoingOn:
          if (now < attempt.end) {
            going_on.push_back(std::move(attempt));
          } else {
            ++num_dropped_;
          }
          break;
        case TcpHandshake::State::kDone:
          keep(attempt.handshake);
          break;
        case TcpHandshake::State::kFailed:
          auto refused = take_failure(attempt.handshake, now);
          if (!refused) return refused;
          break;
      }
    }
    attempts_ = std::move(going_on);
    return {};
  }

  void keep(TcpHandshake& handshake) {
    TcpPeer& peer = peers_[handshake.peer_rank()];
    UniqueFd& place = handshake.channel() == TcpChannel::kControl ? peer.control : peer.data;
    if (place.is_valid()) return;  // a second one; the first counts
    peer.host = handshake.peer_host();
    place = handshake.take_socket();
    if (handshake.channel() == TcpChannel::kData) prepare_for_bulk(place.get());
  }

  // Whoever came here is dropped; whom this rank dialled it needs.
  Result<void> take_failure(const TcpHandshake& handshake, SteadyTime now) {
    if (!handshake.is_dialler()) {
      ++num_dropped_;
      return {};
    }
    const auto peer = static_cast<int>(handshake.peer_rank());
    if (!handshake.may_retry()) return make_error("{} {}", describe(peer), handshake.reason());
    last_reason_ = handshake.reason();
    redials_.push_back({peer, handshake.channel(), now + kRedialPause});
    return {};
  }

  Result<void> redial(SteadyTime now) {
    std::vector<Redial> due;
    std::erase_if(redials_, [&](const Redial& redial) {
      if (redial.when > now) return false;
      due.push_back(redial);
      return true;
    });
    for (const Redial& redial : due) {
      auto dialled = dial(redial.peer, redial.channel);
      if (!dialled) return dialled;
    }
    return {};
  }

  Result<void> accept_all(int listener, SteadyTime now) {
    for (;;) {
      UniqueFd socket = accept_one(listener);
      if (!socket.is_valid()) {
        if (!is_descriptor_shortage(errno)) return {};
        return make_error("cannot accept a connection: {}", describe_descriptor_error(errno));
      }
      attempts_.push_back({TcpHandshake::accept(std::move(socket), &identity_),
                           std::min(deadline_, now + kStrangerTime)});
      drop_oldest_stranger();
    }
  }

  // A rank that is dropped before it has greeted dials again; later it may believe that it is
  // connected. So those who have said nothing go first.
  void drop_oldest_stranger() {
    const auto is_stranger = [](const Attempt& attempt) { return !attempt.handshake.is_dialler(); };
    const auto is_silent = [](const Attempt& attempt) {
      return !attempt.handshake.is_dialler() && !attempt.handshake.is_greeted();
    };
    if (static_cast<std::size_t>(std::count_if(attempts_.begin(), attempts_.end(), is_stranger)) <=
        kMaxStrangers) {
      return;
    }
    auto dropped = std::find_if(attempts_.begin(), attempts_.end(), is_silent);
    if (dropped == attempts_.end()) {
      dropped = std::find_if(attempts_.begin(), attempts_.end(), is_stranger);
    }
    attempts_.erase(dropped);
    ++num_dropped_;
  }

  [[nodiscard]] bool is_watching_peers() const { return time_left() > unwatched_end(timeout_); }

  // A rank that has proven itself and gone again.
  std::optional<std::string> lost_peer() {
    for (int rank = 0; rank < settings_.size; ++rank) {
      const TcpPeer& peer = peers_[static_cast<std::size_t>(rank)];
      if (!peer.control.is_valid()) continue;
      pollfd ended{peer.control.get(), POLLRDHUP, 0};
      if (poll(&ended, 1, 0) > 0) {
        return fmt::format("{} went away before all ranks were connected", describe(rank));
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] bool has_all_of(int rank) const {
    const TcpPeer& peer = peers_[static_cast<std::size_t>(rank)];
    return rank == settings_.rank ||
           (peer.control.is_valid() &&
            (peer.data.is_valid() || !needs_data_link(settings_.rank, rank, settings_.size)));
  }

  [[nodiscard]] bool is_complete() const {
    for (int rank = 0; rank < settings_.size; ++rank) {
      if (!has_all_of(rank)) return false;
    }
    return true;
  }

  Result<void> missing() const {
    std::string names;
    for (int rank = 0; rank < settings_.size; ++rank) {
      if (has_all_of(rank)) continue;
      names += (names.empty() ? "" : ", ") + describe(rank);
    }
    std::string text =
        fmt::format("{} did not connect within {}", names, format_duration(timeout_));
    if (!last_reason_.empty()) text += fmt::format(" (one {})", last_reason_);
    if (num_dropped_ > 0) {
      text += fmt::format("; {} connection{} that could not prove the job's nonce {} dropped",
                          num_dropped_, num_dropped_ == 1 ? "" : "s",
                          num_dropped_ == 1 ? "was" : "were");
    }
    return make_error(ExitCode::kTimeout, "{}", text);
  }

  [[nodiscard]] std::string describe(int rank) const {
    const std::string& host = peers_[static_cast<std::size_t>(rank)].host;
    return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host);
  }

  TcpRendezvous& rendezvous_;
  const TcpSettings& settings_;
  const milliseconds timeout_;
  const SteadyTime deadline_;
  TcpIdentity identity_;
  UniqueFd listener_;
  UniqueFd local_listener_;
  std::vector<TcpPeer> peers_;
  std::vector<Destination> destinations_;
  std::vector<Attempt> attempts_;
  std::vector<Redial> redials_;
  std::size_t num_dropped_ = 0;
  std::string last_reason_;
};

Result<void> check(const TcpSettings& settings) {
  if (settings.size < 1 || settings.rank < 0 || settings.rank >= settings.size) {
    return make_error("rank {} of {} is no rank", settings.rank, settings.size);
  }
  if (settings.nonce.size() < kMinNonce) {
    return make_error("the job's nonce has {} bytes: it needs {} or more", settings.nonce.size(),
                      kMinNonce);
  }
  return {};
}

Result<std::unique_ptr<Communicator>> connect(TcpRendezvous& rendezvous,
                                              const TcpSettings& settings, milliseconds timeout) {
  const auto checked = check(settings);
  if (!checked) return tl::unexpected(checked.error());
  if (settings.size == 1) return single_communicator();
  Meeting meeting(rendezvous, settings, timeout);
  auto peers = meeting.run();
  if (!peers) return tl::unexpected(peers.error());
  auto mesh = std::make_unique<TcpMesh>(settings.rank, std::move(*peers));
  const auto opened = mesh->open();
  if (!opened) return tl::unexpected(opened.error());
  auto communicator = std::make_unique<TcpCommunicator>(std::move(mesh));
  // A rank is connected when all are.
  const auto met = communicator->barrier({meeting.time_left(), nullptr});
  if (met) return communicator;
  const auto failure = communicator->failure();
  if (!failure || failure->kind == CommunicatorFailure::Kind::kDeadline) {
    return tl::unexpected(met.error());
  }
  return with_exit(met.error(), exit_of(failure->kind));
}

}  // namespace

Result<std::unique_ptr<Communicator>> tcp_connect(TcpRendezvous& rendezvous,
                                                  const TcpSettings& settings,
                                                  milliseconds timeout) {
  auto connected = connect(rendezvous, settings, timeout);
  if (connected) return connected;
  return tl::unexpected(
      connected.error().within(fmt::format("rank {}: connecting the ranks", settings.rank)));
}

}  // namespace hvd
