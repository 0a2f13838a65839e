#include "runtime/rank_connect.h"

#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/clock.h"
#include "base/random_bytes.h"
#include "runtime/tcp_connect.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kNonceBytes = 32;

// Rank 0 makes it; the rendezvous shows it to the job's ranks only.
Result<std::string> shared_nonce(TcpRendezvous& rendezvous, int rank, milliseconds timeout) {
  constexpr const char* kKey = "tcp_communicator/nonce";
  if (rank > 0) {
    auto nonce = rendezvous.get(kKey, timeout);
    if (nonce) return nonce;
    return tl::unexpected(nonce.error().within("rank 0 did not leave the job's nonce"));
  }
  auto nonce = random_bytes(kNonceBytes);
  if (!nonce) return nonce;
  const auto put = rendezvous.put(kKey, *nonce, timeout);
  if (!put) return tl::unexpected(put.error());
  return nonce;
}

// What travels of a Seat: equal sizes on all ranks.
struct SeatRecord {
  std::array<char, 252> node{};
  std::int32_t local_rank = 0;
};

// Machines of one name (containers) differ in their boot.
std::string node_of(const LaunchPlace& launch) {
  std::string key = launch.node;
  if (key.empty()) std::ifstream("/proc/sys/kernel/random/boot_id") >> key;
  return fmt::format("{} {} {}", launch.place.host, key, launch.group);
}

SeatRecord own_record(const LaunchPlace& launch) {
  SeatRecord record;
  const std::string node = node_of(launch);
  std::memcpy(record.node.data(), node.data(), std::min(node.size(), record.node.size() - 1));
  record.local_rank = launch.place.local_rank;
  return record;
}

}  // namespace

Result<std::unique_ptr<Communicator>> connect_ranks(WorkerRendezvous& rendezvous,
                                                    const LaunchPlace& launch,
                                                    milliseconds timeout) {
  if (launch.place.size == 1) return single_communicator();
  const SteadyTime deadline = steady_clock::now() + timeout;
  auto nonce = shared_nonce(rendezvous, launch.place.rank, timeout);
  if (!nonce) return tl::unexpected(nonce.error());
  auto address = rendezvous.own_address();
  if (!address) return tl::unexpected(address.error());
  TcpSettings settings;
  settings.rank = launch.place.rank;
  settings.size = launch.place.size;
  settings.listen_address = std::move(*address);
  settings.host = launch.place.host;
  settings.generation = launch.generation;
  settings.nonce = std::move(*nonce);
  return tcp_connect(rendezvous, settings,
                     std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
}

Result<Place> gather_place(Communicator& communicator, const LaunchPlace& launch,
                           milliseconds timeout) {
  const SeatRecord own = own_record(launch);
  std::vector<SeatRecord> records(static_cast<std::size_t>(communicator.size()));
  const auto gathered = communicator.all_gather(&own, records.data(), sizeof own, DataType::kUint8,
                                                {timeout, nullptr});
  if (!gathered) return collective_error(communicator, gathered.error());
  std::vector<Seat> seats;
  for (const SeatRecord& record : records) {
    seats.push_back({record.node.data(), record.local_rank});
  }
  const auto checked = check_seats(seats);
  if (!checked) return tl::unexpected(checked.error());
  return complete_place(launch.place, seats);
}

}  // namespace hvd
