#include "runtime/communicator_environment.h"

#include <unistd.h>

#include <array>

#include "runtime/rank_connect.h"
#include "runtime/worker_rendezvous.h"

namespace hvd {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Result<WorkerPlace> worker_place(const EnvList& environment) {
  auto launch = launch_place(environment, host_name());
  if (!launch) return tl::unexpected(launch.error());
  WorkerPlace place;
  place.is_alone = launch->way == MeetingWay::kNone;
  place.rank = launch->place.rank;
  place.size = launch->place.size;
  place.address = launch->address;
  place.host = launch->place.host;
  place.rendezvous = launch->where;
  return place;
}

Result<std::unique_ptr<Communicator>> communicator_from_environment(
    std::chrono::milliseconds timeout) {
  const auto launch = launch_place(split_environ(environ), host_name());
  if (!launch) return tl::unexpected(launch.error());
  auto rendezvous = open_rendezvous(*launch, timeout);
  if (!rendezvous) return tl::unexpected(rendezvous.error());
  auto connected = connect_ranks(**rendezvous, *launch, timeout);
  if (connected) (*rendezvous)->clean_up();
  return connected;
}

}  // namespace hvd
