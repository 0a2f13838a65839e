#include "runtime/tcp_handshake.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>

#include "runtime/tcp_socket.h"

namespace hvd {
namespace {

constexpr std::size_t kProofBytes = 32;

// Both greetings have this form. Byte order is the machine's: another one fails at the magic.
struct Greeting {
  std::uint64_t magic = 0x3130706374647668;  // "hvdtcp01"
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t generation = 0;
  TcpChannel channel = TcpChannel::kControl;
  char host[64] = {};
  unsigned char random[32] = {};
};
static_assert(sizeof(Greeting) == 120 && std::is_trivially_copyable_v<Greeting>);

std::string make_greeting(const TcpIdentity& identity, TcpChannel channel) {
  Greeting greeting;
  greeting.rank = identity.rank;
  greeting.size = identity.size;
  greeting.generation = identity.generation;
  greeting.channel = channel;
  const std::size_t length = std::min(identity.host.size(), sizeof greeting.host - 1);
  memcpy(greeting.host, identity.host.data(), length);
  if (getrandom(greeting.random, sizeof greeting.random, 0) != sizeof greeting.random) abort();
  return {reinterpret_cast<const char*>(&greeting), sizeof greeting};
}

Greeting read_greeting(std::string_view bytes) {
  Greeting greeting;
  memcpy(&greeting, bytes.data(), sizeof greeting);
  greeting.host[sizeof greeting.host - 1] = '\0';
  // It goes into error texts.
  for (char& c : greeting.host) {
    if (c != '\0' && (c < ' ' || c > '~')) c = '?';
  }
  return greeting;
}

bool is_equal_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

TcpHandshake::TcpHandshake(UniqueFd socket, const TcpIdentity* identity, bool is_dialler)
    : socket_(std::move(socket)),
      identity_(identity),
      is_dialler_(is_dialler),
      step_(is_dialler ? Step::kConnecting : Step::kReadGreeting),
      wanted_(sizeof(Greeting)) {}

TcpHandshake TcpHandshake::dial(UniqueFd socket, const TcpIdentity* identity,
                                std::uint32_t peer_rank, TcpChannel channel) {
  TcpHandshake made(std::move(socket), identity, true);
  made.peer_rank_ = peer_rank;
  made.channel_ = channel;
  made.dial_greeting_ = make_greeting(*identity, channel);
  made.out_ = made.dial_greeting_;
  made.wanted_ = sizeof(Greeting) + kProofBytes;
  return made;
}

TcpHandshake TcpHandshake::accept(UniqueFd socket, const TcpIdentity* identity) {
  return {std::move(socket), identity, false};
}

short TcpHandshake::events() const {
  const bool is_reading = step_ == Step::kReadGreeting || step_ == Step::kReadProof;
  return is_reading ? POLLIN : POLLOUT;
}

TcpHandshake::State TcpHandshake::advance() {
  while (step_ != Step::kOver && reason_.empty()) {
    if (!move()) break;
  }
  if (!reason_.empty()) return State::kFailed;
  return step_ == Step::kOver ? State::kDone : State::kGoingOn;
}

// One step; false where it must wait or has failed.
bool TcpHandshake::move() {
  switch (step_) {
    case Step::kConnecting: {
      pollfd ready{socket_.get(), POLLOUT, 0};
      if (poll(&ready, 1, 0) == 0) return false;
      const int error = dial_error(socket_.get());
      if (error != 0) return fail(fmt::format("cannot be connected to: {}", strerror(error)));
      step_ = Step::kWriteGreeting;
      return true;
    }
    case Step::kWriteGreeting:
      if (!write_some()) return false;
      step_ = is_dialler_ ? Step::kReadGreeting : Step::kReadProof;
      return true;
    case Step::kReadGreeting:
      if (!read_some()) return false;
      return is_dialler_ ? take_accept_greeting() : take_dial_greeting();
    case Step::kWriteProof:
      if (!write_some()) return false;
      step_ = Step::kOver;
      return true;
    case Step::kReadProof:
      return read_some() && take_dial_proof();
    case Step::kOver:
      return false;
  }
  return false;
}

bool TcpHandshake::write_some() {
  while (!out_.empty()) {
    const ssize_t sent = send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) {
      return fail(fmt::format("ended the connection before it was proven: {}", strerror(errno)),
                  true);
    }
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool TcpHandshake::read_some() {
  while (in_.size() < wanted_) {
    char bytes[256];
    const ssize_t got = recv(socket_.get(), bytes, std::min(sizeof bytes, wanted_ - in_.size()), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) return fail("ended the connection before it was proven", true);
    in_.append(bytes, static_cast<std::size_t>(got));
  }
  return true;
}

// The acceptor's proof answers the dialler's random bytes, and the other way round. The role keeps
// one from serving as the other.
std::string TcpHandshake::proof_of(std::string_view role) const {
  const std::string text = fmt::format("{}{}{}", role, dial_greeting_, accept_greeting_);
  std::string proof(kProofBytes, '\0');
  HMAC(EVP_sha256(), identity_->nonce.data(), static_cast<int>(identity_->nonce.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(proof.data()), nullptr);
  return proof;
}

bool TcpHandshake::take_dial_greeting() {
  const Greeting greeting = read_greeting(in_);
  const bool is_peer = greeting.magic == Greeting{}.magic && greeting.size == identity_->size &&
                       greeting.generation == identity_->generation &&
                       greeting.rank > identity_->rank && greeting.rank < identity_->size &&
                       greeting.channel <= TcpChannel::kData;
  if (!is_peer) return fail("is no rank of this job");
  peer_rank_ = greeting.rank;
  channel_ = greeting.channel;
  peer_host_ = greeting.host;
  dial_greeting_ = std::exchange(in_, {});
  accept_greeting_ = make_greeting(*identity_, channel_);
  out_ = accept_greeting_ + proof_of("accept");
  wanted_ = kProofBytes;
  step_ = Step::kWriteGreeting;
  return true;
}

bool TcpHandshake::take_accept_greeting() {
  const Greeting greeting = read_greeting(in_);
  accept_greeting_ = in_.substr(0, sizeof(Greeting));
  if (!is_equal_secret(in_.substr(sizeof(Greeting)), proof_of("accept"))) {
    return fail(
        "cannot prove the job's nonce: another job answers at that address, or the ranks were "
        "given different nonces");
  }
  if (greeting.rank != peer_rank_) {
    return fail(fmt::format("is not there: rank {} answers at its address", greeting.rank));
  }
  peer_host_ = greeting.host;
  out_ = proof_of("dial");
  step_ = Step::kWriteProof;
  return true;
}

bool TcpHandshake::take_dial_proof() {
  if (!is_equal_secret(in_, proof_of("dial"))) return fail("cannot prove the job's nonce");
  step_ = Step::kOver;
  return true;
}

bool TcpHandshake::fail(std::string reason, bool may_retry) {
  reason_ = std::move(reason);
  may_retry_ = may_retry;
  return false;
}

}  // namespace hvd
