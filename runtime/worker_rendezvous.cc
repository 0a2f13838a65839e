#include "runtime/worker_rendezvous.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "proto/registration.h"
#include "runtime/folder_meeting.h"
#include "runtime/own_address.h"
#include "runtime/peer_store_edge.h"
#include "runtime/rendezvous_link.h"
#include "runtime/tcp_place.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kLoopback = "127.0.0.1";
constexpr milliseconds kWayLimit{3'000};

milliseconds left_until(SteadyTime deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  return std::max(left, milliseconds(0));
}

bool is_one_machine(const Place& place) { return place.local_size == place.size; }

// One process: nobody to wait for.
class AloneRendezvous final : public WorkerRendezvous {
 public:
  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override {
    return values_.put(key, value, timeout);
  }
  Result<std::string> get(const std::string& key, Timeout timeout) override {
    return values_.get(key, timeout);
  }
  Result<void> register_worker(const v1::Registration&, Timeout) override { return {}; }
  Result<std::string> own_address() const override { return kLoopback; }

 private:
  InMemoryRendezvous values_;
};

// The agent's store, or rank 0's: rank 0 holds the server that it is a client of, too.
class LinkRendezvous final : public WorkerRendezvous {
 public:
  LinkRendezvous(RendezvousLink link, LaunchPlace launch, std::unique_ptr<PeerStoreEdge> server)
      : server_(std::move(server)), link_(std::move(link)), launch_(std::move(launch)) {}

  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override {
    return link_.put(key, value, launch_.generation, timeout);
  }
  Result<std::string> get(const std::string& key, Timeout timeout) override {
    return link_.get(key, launch_.generation, timeout);
  }
  Result<void> register_worker(const v1::Registration& registration, Timeout timeout) override {
    const auto registered = link_.register_worker(registration, timeout);
    if (!registered) return tl::unexpected(registered.error());
    return {};
  }
  Result<std::string> own_address() const override {
    if (!launch_.address.empty()) return launch_.address;
    if (is_one_machine(launch_.place)) return kLoopback;
    return own_address_towards(launch_.where, launch_.port);
  }

 private:
  const std::unique_ptr<PeerStoreEdge> server_;
  RendezvousLink link_;
  const LaunchPlace launch_;
};

std::string registration_key(std::uint32_t rank) { return fmt::format("registration/{}", rank); }
constexpr const char* kVerdictKey = "registration/verdict";

class RunFolderRendezvous final : public WorkerRendezvous {
 public:
  RunFolderRendezvous(std::string run_folder, LaunchPlace launch)
      : files_(run_folder), run_folder_(std::move(run_folder)), launch_(std::move(launch)) {}

  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override {
    return files_.put(key, value, timeout);
  }
  Result<std::string> get(const std::string& key, Timeout timeout) override {
    return files_.get(key, timeout);
  }

  Result<void> register_worker(const v1::Registration& registration, Timeout timeout) override {
    const SteadyTime deadline = steady_clock::now() + timeout;
    auto done = files_.put(registration_key(registration.rank()), registration.SerializeAsString(),
                           timeout);
    if (done && registration.rank() == 0) done = judge(deadline);
    if (!done) return done;
    const auto verdict = files_.get(kVerdictKey, left_until(deadline));
    if (!verdict) return tl::unexpected(verdict.error());
    if (verdict->empty()) return {};
    return worker_error(WorkerExit::kMismatch, "{}", *verdict);
  }

  Result<std::string> own_address() const override {
    if (!launch_.address.empty()) return launch_.address;
    if (is_one_machine(launch_.place)) return kLoopback;
    auto own = own_address_of_default_route();
    // A machine without a network can have only local ranks.
    if (!own) return kLoopback;
    return own;
  }

  void clean_up() override {
    if (launch_.place.rank != 0) return;
    leave_folder(launch_.where, launch_.job, run_folder_, launch_.place.size);
  }

 private:
  // Rank 0: what all have told, and the verdict for all: empty, or why not.
  Result<void> judge(SteadyTime deadline) {
    std::vector<v1::Registration> ranks(static_cast<std::size_t>(launch_.place.size));
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      const auto bytes = files_.get(registration_key(rank), left_until(deadline));
      if (!bytes) return tl::unexpected(bytes.error());
      if (!ranks[rank].ParseFromString(*bytes)) {
        return make_error("the registration of rank {} in {} cannot be read", rank, run_folder_);
      }
    }
    const RegistrationVerdict verdict = check_registrations(ranks);
    for (const std::string& warning : verdict.warnings) log(LogLevel::kWarning, "{}", warning);
    if (!verdict.refusal) return files_.put(kVerdictKey, "", left_until(deadline));
    if (!verdict.refusal->table.empty()) {
      log(LogLevel::kError, "{}\n{}", verdict.refusal->headline,
          fmt::join(verdict.refusal->table, "\n"));
    }
    return files_.put(kVerdictKey, verdict.refusal->headline, left_until(deadline));
  }

  FolderRendezvous files_;
  const std::string run_folder_;
  const LaunchPlace launch_;
};

using Opened = Result<std::unique_ptr<WorkerRendezvous>>;

Opened open_folder(const LaunchPlace& launch, milliseconds timeout) {
  auto run =
      meet_in_folder(launch.where, launch.job, launch.place.rank, launch.place.size, timeout);
  if (!run) return tl::unexpected(run.error());
  return std::make_unique<RunFolderRendezvous>(std::move(*run), launch);
}

Opened open_agent(const LaunchPlace& launch) {
  auto link = RendezvousLink::open(launch.where);
  if (!link) return tl::unexpected(link.error());
  return std::make_unique<LinkRendezvous>(std::move(*link), launch, nullptr);
}

// Rank 0 asks the way that all others go for what it has put there itself: the name may be that of
// a gateway to it.
Result<void> check_way_to(PeerStoreEdge& server, const LaunchPlace& launch, milliseconds timeout) {
  constexpr const char* kKey = "rank_0";
  const auto token = random_bytes(16).map(hex_of);
  if (!token) return tl::unexpected(token.error());
  RendezvousLink near = RendezvousLink::open_tcp(server.local_host(), server.port(), launch.job);
  const auto put = near.put(kKey, *token, launch.generation, timeout);
  if (!put) return put;
  RendezvousLink far = RendezvousLink::open_tcp(launch.where, launch.port, launch.job);
  const auto found = far.get(kKey, launch.generation, std::min(timeout, kWayLimit));
  if (found && *found == *token) return {};
  return foreign_host(launch.where, launch.port);
}

Opened open_as_server(const LaunchPlace& launch, milliseconds timeout) {
  auto server = PeerStoreEdge::start(launch.where, launch.port, launch.job);
  if (!server) return tl::unexpected(server.error());
  if (!is_host_here(launch.where)) {
    const auto checked = check_way_to(**server, launch, timeout);
    if (!checked) return tl::unexpected(checked.error());
  }
  // Rank 0 reaches its own server whatever its machine is called from outside.
  RendezvousLink link =
      RendezvousLink::open_tcp((*server)->local_host(), (*server)->port(), launch.job);
  return std::make_unique<LinkRendezvous>(std::move(link), launch, std::move(*server));
}

Opened open_tcp(const LaunchPlace& launch, milliseconds timeout) {
  const auto checked = check_tcp_host(launch.where, launch.port);
  if (!checked) return tl::unexpected(checked.error());
  if (launch.place.rank == 0) return open_as_server(launch, timeout);
  RendezvousLink link = RendezvousLink::open_tcp(launch.where, launch.port, launch.job);
  return std::make_unique<LinkRendezvous>(std::move(link), launch, nullptr);
}

}  // namespace

Opened open_rendezvous(const LaunchPlace& launch, milliseconds timeout) {
  if (launch.way != MeetingWay::kNone) {
    const auto checked = check_own_address(launch.address);
    if (!checked) return tl::unexpected(checked.error());
  }
  switch (launch.way) {
    case MeetingWay::kNone:
      return std::make_unique<AloneRendezvous>();
    case MeetingWay::kAgent:
      return open_agent(launch);
    case MeetingWay::kFolder:
      return open_folder(launch, timeout);
    case MeetingWay::kTcp:
      return open_tcp(launch, timeout);
  }
  return make_error("there is no such way to meet");
}

}  // namespace hvd
