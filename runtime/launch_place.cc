#include "runtime/launch_place.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/parse_number.h"
#include "runtime/job_identity.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

constexpr int kUnknown = 0;
constexpr int kMaxPort = 65535;

template <typename... Args>
tl::unexpected<Error> usage(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ExitCode::kUsage, format, std::forward<Args>(args)...);
}

std::optional<int> parse_count(std::string_view text) {
  const auto value = parse_number<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// Reads the numbers of one launcher and keeps the first thing that is wrong with them.
class Variables {
 public:
  Variables(const EnvList& environment, const char* launcher)
      : environment_(environment), launcher_(launcher) {}

  int required(const char* name) {
    const auto text = find_env(environment_, name);
    if (!text) lack(name);
    return text ? number(name, *text) : 0;
  }
  int optional(const char* name, int otherwise) {
    const auto text = find_env(environment_, name);
    return text ? number(name, *text) : otherwise;
  }
  // The first of the names that is set.
  int required_one_of(const char* name, const char* other) {
    return find_env(environment_, name) || !find_env(environment_, other) ? required(name)
                                                                          : required(other);
  }

  void fail(std::string what) {
    if (what_.empty()) what_ = std::move(what);
  }
  // What is not set; all of it is told in one sentence.
  void lack(std::string name) { lacking_.push_back(std::move(name)); }
  [[nodiscard]] bool is_lacking() const { return !lacking_.empty(); }
  void check_rank(const char* rank_name, int rank, const char* size_name, int size) {
    if (rank >= size) {
      fail(fmt::format("{}={} is no rank of {}={}", rank_name, rank, size_name, size));
    }
  }
  [[nodiscard]] Result<void> result() const {
    if (what_.empty() && lacking_.empty()) return {};
    const std::string what = lacking_.empty()
                                 ? what_
                                 : fmt::format("{} {} not set", fmt::join(lacking_, ", "),
                                               lacking_.size() == 1 ? "is" : "are");
    return usage(
        "the variables of {} are set in part: {}; start all ranks by one launcher, or "
        "unset its variables to run one process",
        launcher_, what);
  }

 private:
  int number(const char* name, const std::string& text) {
    const auto value = parse_count(text);
    if (!value) fail(fmt::format("{}={} is no number", name, text));
    return value.value_or(0);
  }

  const EnvList& environment_;
  const char* const launcher_;
  std::string what_;
  std::vector<std::string> lacking_;
};

bool has(const EnvList& environment, const char* name) {
  return find_env(environment, name).has_value();
}

// Where ranks by hand meet: told with what else they lack, so that one look at it is enough.
void lack_meeting(const EnvList& environment, Variables& variables) {
  if (has(environment, "HVDRUN_INIT") || has(environment, "HVDRUN_RENDEZVOUS")) return;
  if (has(environment, "MASTER_ADDR") && has(environment, "MASTER_PORT")) return;
  variables.lack("HVDRUN_INIT (or MASTER_ADDR and MASTER_PORT)");
}

// Its own, or the only one that there can be: where a node has one rank, or all.
int torch_local_rank(const EnvList& environment, const Place& place, Variables& variables) {
  if (has(environment, "LOCAL_RANK")) return variables.required("LOCAL_RANK");
  if (place.local_size == 1) return 0;
  if (place.local_size != kUnknown && place.local_size == place.size) return place.rank;
  variables.lack("LOCAL_RANK");
  if (place.local_size == kUnknown) {
    variables.lack("LOCAL_WORLD_SIZE (1 where each rank has a machine of its own)");
  }
  return 0;
}

// hvdrun sets torch's names, too.
Result<LaunchPlace> torch_place(const EnvList& environment, const char* launcher) {
  Variables variables(environment, launcher);
  LaunchPlace found;
  Place& place = found.place;
  place.launcher = launcher;
  place.rank = variables.required("RANK");
  place.size = variables.required("WORLD_SIZE");
  const bool is_one = place.rank == 0 && place.size == 1;
  const char* const size_name =
      has(environment, "LOCAL_WORLD_SIZE") ? "LOCAL_WORLD_SIZE" : "LOCAL_SIZE";
  place.local_size = is_one ? 1 : variables.optional(size_name, kUnknown);
  place.local_rank = torch_local_rank(environment, place, variables);
  if (variables.is_lacking()) lack_meeting(environment, variables);
  place.cross_rank = variables.optional("GROUP_RANK", 0);
  place.cross_size = variables.optional("GROUP_WORLD_SIZE", kUnknown);
  variables.check_rank("RANK", place.rank, "WORLD_SIZE", place.size);
  if (is_one || has(environment, size_name)) {
    variables.check_rank("LOCAL_RANK", place.local_rank, size_name, place.local_size);
  }
  if (place.cross_size != kUnknown) {
    variables.check_rank("GROUP_RANK", place.cross_rank, "GROUP_WORLD_SIZE", place.cross_size);
  }
  if (place.local_size > place.size) {
    variables.fail(fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}", place.local_size,
                               place.size));
  }
  found.group = env_value(environment, "GROUP_RANK");
  found.generation =
      static_cast<std::uint32_t>(variables.optional("TORCHELASTIC_RESTART_COUNT", 0));
  const auto checked = variables.result();
  if (!checked) return tl::unexpected(checked.error());
  return found;
}

Result<LaunchPlace> hvdrun_place(const EnvList& environment) {
  auto found = torch_place(environment, "hvdrun");
  if (!found) return found;
  Variables variables(environment, "hvdrun");
  // Horovod's sense: nodes need not have equally many ranks.
  found->place.cross_rank = variables.optional("HOROVOD_CROSS_RANK", found->place.cross_rank);
  found->place.cross_size = variables.optional("HOROVOD_CROSS_SIZE", found->place.cross_size);
  const auto checked = variables.result();
  if (!checked) return tl::unexpected(checked.error());
  found->way = MeetingWay::kAgent;
  found->where = *find_env(environment, "HVDRUN_RENDEZVOUS");
  found->address = env_value(environment, "HVDRUN_ADDRESS");
  if (found->address.empty()) found->address = "127.0.0.1";
  return found;
}

struct MpiNames {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr MpiNames kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr MpiNames kMpich = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

Result<LaunchPlace> mpi_place(const EnvList& environment, const MpiNames& names) {
  Variables variables(environment, "mpirun");
  LaunchPlace found;
  Place& place = found.place;
  place.launcher = "mpirun";
  place.rank = variables.required(names.rank);
  place.size = variables.required(names.size);
  const bool is_one = place.rank == 0 && place.size == 1;
  place.local_rank = is_one ? 0 : variables.required(names.local_rank);
  place.local_size = variables.optional(names.local_size, kUnknown);
  place.cross_size = kUnknown;
  variables.check_rank(names.rank, place.rank, names.size, place.size);
  if (place.local_size != kUnknown) {
    variables.check_rank(names.local_rank, place.local_rank, names.local_size, place.local_size);
  }
  const auto checked = variables.result();
  if (!checked) return tl::unexpected(checked.error());
  return found;
}

Result<LaunchPlace> srun_place(const EnvList& environment) {
  Variables variables(environment, "srun");
  LaunchPlace found;
  Place& place = found.place;
  place.launcher = "srun";
  place.rank = variables.required("SLURM_PROCID");
  // The step's own number: a step may be smaller than its job.
  place.size = variables.required_one_of("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  const bool is_one = place.rank == 0 && place.size == 1;
  place.local_rank = is_one ? 0 : variables.required("SLURM_LOCALID");
  place.local_size = kUnknown;
  place.cross_size = kUnknown;
  variables.check_rank("SLURM_PROCID", place.rank, "SLURM_NTASKS", place.size);
  const auto checked = variables.result();
  if (!checked) return tl::unexpected(checked.error());
  found.node = env_value(environment, "SLURM_NODEID");
  return found;
}

// A batch script has a SLURM_PROCID, too, but is no step.
bool is_srun_step(const EnvList& environment) {
  if (!has(environment, "SLURM_PROCID")) return false;
  return has(environment, "SLURM_STEP_ID") || has(environment, "SLURM_STEPID") ||
         !has(environment, "SLURM_JOB_ID");
}

// Slurm's own PMI sets both, and only Slurm then knows the local rank.
bool is_pmi_of_srun(const EnvList& environment) {
  return is_srun_step(environment) && !has(environment, "MPI_LOCALRANKID") &&
         find_env(environment, "PMI_RANK") == find_env(environment, "SLURM_PROCID");
}

Result<LaunchPlace> place_of_launcher(const EnvList& environment) {
  if (has(environment, "HVDRUN_RENDEZVOUS")) return hvdrun_place(environment);
  if (has(environment, "RANK") || has(environment, "WORLD_SIZE")) {
    return torch_place(environment, "torchrun");
  }
  if (has(environment, "OMPI_COMM_WORLD_RANK") || has(environment, "OMPI_COMM_WORLD_SIZE")) {
    return mpi_place(environment, kOpenMpi);
  }
  if ((has(environment, "PMI_RANK") || has(environment, "PMI_SIZE")) &&
      !is_pmi_of_srun(environment)) {
    return mpi_place(environment, kMpich);
  }
  if (is_srun_step(environment)) return srun_place(environment);
  return LaunchPlace{};
}

Result<void> meet_at(LaunchPlace& found, const std::string& url) {
  constexpr std::string_view kFile = "file://";
  constexpr std::string_view kTcp = "tcp://";
  if (url.rfind(kFile, 0) == 0 && url.size() > kFile.size() + 1 && url[kFile.size()] == '/') {
    found.way = MeetingWay::kFolder;
    found.where = url.substr(kFile.size());
    return {};
  }
  const auto colon = url.rfind(':');
  if (url.rfind(kTcp, 0) == 0 && colon > kTcp.size() && colon != std::string::npos) {
    const auto port = parse_count(std::string_view(url).substr(colon + 1));
    std::string host = url.substr(kTcp.size(), colon - kTcp.size());
    const bool is_v6 = host.front() == '[' && host.back() == ']';
    if (is_v6) host = host.substr(1, host.size() - 2);
    if (port && *port > 0 && *port <= kMaxPort && !host.empty() &&
        (is_v6 || host.find(':') == std::string::npos)) {
      found.way = MeetingWay::kTcp;
      found.where = std::move(host);
      found.port = *port;
      return {};
    }
  }
  return usage(
      "HVDRUN_INIT={} says nowhere to meet: give file:///FOLDER (an absolute path that all "
      "ranks see) or tcp://HOST:PORT (of rank 0)",
      url);
}

// torch's own store listens at MASTER_PORT.
Result<void> meet_beside_torch(LaunchPlace& found, const EnvList& environment) {
  const auto host = find_env(environment, "MASTER_ADDR");
  const auto port_text = find_env(environment, "MASTER_PORT");
  const auto port = port_text ? parse_count(*port_text) : std::nullopt;
  if (!host || host->empty() || !port || *port < 1 || *port >= kMaxPort) {
    return usage(
        "RANK={} of WORLD_SIZE={}, but MASTER_ADDR={} and MASTER_PORT={} name no place to meet: "
        "start the ranks by hvdrun or torchrun, or set HVDRUN_INIT to file:///FOLDER or "
        "tcp://HOST:PORT",
        found.place.rank, found.place.size, host.value_or(""), port_text.value_or(""));
  }
  found.way = MeetingWay::kTcp;
  found.where = *host;
  found.port = *port + 1;
  return {};
}

Result<void> choose_meeting(LaunchPlace& found, const EnvList& environment) {
  if (found.way == MeetingWay::kAgent) return {};
  const auto url = find_env(environment, "HVDRUN_INIT");
  const bool has_url = url && !url->empty();
  if (has_url && found.place.launcher.empty()) {
    return usage(
        "HVDRUN_INIT is set, but this process has no rank: each needs RANK, WORLD_SIZE, LOCAL_RANK "
        "and LOCAL_WORLD_SIZE, or a launcher that sets its own; unset HVDRUN_INIT to run alone");
  }
  if (found.place.size == 1) return {};
  if (has_url) return meet_at(found, *url);
  if (found.place.launcher == "torchrun") return meet_beside_torch(found, environment);
  return usage(
      "rank {} of {} ranks of {} does not know where to meet the others: set HVDRUN_INIT to "
      "file:///FOLDER (that all ranks see) or tcp://HOST:PORT (of rank 0), or start by hvdrun",
      found.place.rank, found.place.size, found.place.launcher);
}

}  // namespace

Result<LaunchPlace> launch_place(const EnvList& environment, const std::string& host) {
  auto found = place_of_launcher(environment);
  if (!found) return found;
  if (found->place.size == 1) {
    found->place.local_size = 1;
    found->place.cross_size = 1;
  }
  if (found->address.empty()) found->address = env_value(environment, "HVDRUN_ADDRESS");
  found->place.host = env_value(environment, "HOROVOD_HOSTNAME");
  if (found->place.host.empty()) found->place.host = host;
  found->job = job_identity(environment, found->place);
  const auto chosen = choose_meeting(*found, environment);
  if (!chosen) return tl::unexpected(chosen.error());
  return found;
}

Result<void> check_seats(const std::vector<Seat>& seats) {
  std::map<std::pair<std::string, int>, std::size_t> taken;
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    const Seat& seat = seats[rank];
    const auto [found, is_new] = taken.emplace(std::pair(seat.node, seat.local_rank), rank);
    if (is_new) continue;
    return worker_error(WorkerExit::kMismatch,
                        "ranks {} and {} are both local rank {} of {}: number the ranks of a node "
                        "from 0 on by LOCAL_RANK, or start them by one launcher",
                        found->second, rank, seat.local_rank,
                        seat.node.substr(0, seat.node.find(' ')));
  }
  return {};
}

Place complete_place(Place place, const std::vector<Seat>& seats) {
  const auto rank = static_cast<std::size_t>(place.rank);
  const Seat own = seats.at(rank);
  if (place.local_size == kUnknown) {
    place.local_size = static_cast<int>(std::count_if(
        seats.begin(), seats.end(), [&](const Seat& seat) { return seat.node == own.node; }));
  }
  if (place.cross_size == kUnknown) {
    const auto is_like = [&](const Seat& seat) { return seat.local_rank == own.local_rank; };
    const auto here = seats.begin() + place.rank;
    place.cross_rank = static_cast<int>(std::count_if(seats.begin(), here, is_like));
    place.cross_size = static_cast<int>(std::count_if(seats.begin(), seats.end(), is_like));
  }
  return place;
}

}  // namespace hvd
