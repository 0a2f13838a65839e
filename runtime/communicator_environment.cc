#include "runtime/communicator_environment.h"

#include <sys/random.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "runtime/tcp_connect.h"
#include "runtime/tcp_rendezvous_link.h"

namespace hvd {
namespace {

constexpr std::size_t kNonceBytes = 32;
constexpr std::uint32_t kGeneration = 0;

std::optional<int> number_of(const EnvList& environment, const char* name) {
  const auto text = find_env(environment, name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// Rank 0 makes it; the store shows it to the job's own workers only.
Result<std::string> shared_nonce(TcpRendezvous& rendezvous, int rank,
                                 std::chrono::milliseconds timeout) {
  constexpr const char* kKey = "tcp_communicator/nonce";
  if (rank > 0) return rendezvous.get(kKey, timeout);
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return make_error("the system gives no random bytes");
  }
  const auto put = rendezvous.put(kKey, nonce, timeout);
  if (!put) return tl::unexpected(put.error());
  return nonce;
}

Result<std::unique_ptr<Communicator>> connect(const WorkerPlace& place,
                                              std::chrono::milliseconds timeout) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  auto link = RendezvousLink::open(place.rendezvous);
  if (!link) return tl::unexpected(link.error());
  TcpRendezvousLink rendezvous(std::move(*link), kGeneration);
  auto nonce = shared_nonce(rendezvous, place.rank, timeout);
  if (!nonce) return tl::unexpected(nonce.error());
  TcpSettings settings;
  settings.rank = place.rank;
  settings.size = place.size;
  settings.listen_address = place.address;
  settings.host = place.host;
  settings.generation = kGeneration;
  settings.nonce = std::move(*nonce);
  return tcp_connect(rendezvous, settings,
                     std::chrono::duration_cast<std::chrono::milliseconds>(
                         deadline - std::chrono::steady_clock::now()));
}

}  // namespace

Result<WorkerPlace> worker_place(const EnvList& environment) {
  WorkerPlace place;
  const bool has_ranks = find_env(environment, "RANK") || find_env(environment, "WORLD_SIZE");
  const auto rank = number_of(environment, "RANK");
  const auto size = number_of(environment, "WORLD_SIZE");
  if (!has_ranks || (rank == 0 && size == 1)) return place;
  if (!rank || !size || *rank < 0 || *rank >= *size) {
    return make_error("RANK={} and WORLD_SIZE={} name no rank: set both by a launcher, or neither",
                      find_env(environment, "RANK").value_or(""),
                      find_env(environment, "WORLD_SIZE").value_or(""));
  }
  const auto rendezvous = find_env(environment, "HVDRUN_RENDEZVOUS");
  if (!rendezvous) {
    return make_error(
        "RANK={} and WORLD_SIZE={} are set, but not by hvdrun (no HVDRUN_RENDEZVOUS): several "
        "ranks "
        "meet under hvdrun only (hvdrun -np {} PROGRAM); one process needs neither variable",
        *rank, *size, *size);
  }
  place.is_alone = false;
  place.rank = *rank;
  place.size = *size;
  place.rendezvous = *rendezvous;
  place.address = find_env(environment, "HVDRUN_ADDRESS").value_or("");
  if (place.address.empty()) place.address = "127.0.0.1";
  place.host = find_env(environment, "HOROVOD_HOSTNAME").value_or(place.address);
  return place;
}

Result<std::unique_ptr<Communicator>> communicator_from_environment(
    std::chrono::milliseconds timeout) {
  const auto place = worker_place(split_environ(environ));
  if (!place) return tl::unexpected(place.error());
  if (place->is_alone) return single_communicator();
  return connect(*place, timeout);
}

}  // namespace hvd
