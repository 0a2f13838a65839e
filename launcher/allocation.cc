#include "launcher/allocation.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/blanks.h"
#include "base/lines.h"
#include "base/parse_number.h"
#include "launcher/host_list_builder.h"
#include "launcher/hostfile.h"
#include "launcher/shell_words.h"
#include "launcher/slurm_allocation.h"

namespace hvd {
namespace {

using Found = Result<std::optional<Allocation>>;

std::vector<std::string_view> split_blanks(std::string_view text) {
  std::vector<std::string_view> words;
  while (!(text = strip_blanks(text)).empty()) {
    const auto end = std::min(text.find_first_of(kBlanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// Names with slots as a scheduler tells them, where a name for each slot is the usual way.
class SlotCounter {
 public:
  explicit SlotCounter(std::string source) : source_(std::move(source)) {}

  Result<void> add(std::string_view name, std::optional<std::string_view> slots_text) {
    const auto slots =
        slots_text ? parse_number<std::uint32_t>(*slots_text) : std::optional<std::uint32_t>(1);
    if (!is_host_name(name) || !slots) {
      return make_error(ExitCode::kUsage, "{}: {} is no host with slots; name the hosts with -H",
                        source_, show(slots_text ? fmt::format("{} {}", name, *slots_text) : name));
    }
    HostSpec host;
    host.name = name;
    host.slots = *slots;
    if (auto added = builder_.add(std::move(host)); !added) {
      return tl::unexpected(added.error().within(source_));
    }
    return {};
  }

  Found finish() {
    auto hosts = builder_.finish();
    if (!hosts) return tl::unexpected(hosts.error().within(source_));
    return Allocation{std::move(*hosts), std::move(source_), {}};
  }

 private:
  std::string source_;
  HostListBuilder builder_{nullptr};
};

// A line for each slot, or "host slots ..." where `has_slots`.
Found from_lines(std::string text, std::string source, bool has_slots) {
  SlotCounter counter(std::move(source));
  for (std::string_view rest = text; !rest.empty();) {
    const auto words = split_blanks(take_line(rest));
    if (words.empty()) continue;
    std::optional<std::string_view> slots;
    if (has_slots) slots = words.size() > 1 ? words[1] : "";
    if (auto added = counter.add(words[0], slots); !added) return tl::unexpected(added.error());
  }
  return counter.finish();
}

// The file that a variable names; nullopt: the variable is not set.
Result<std::optional<std::string>> read_named(const EnvList& environment,
                                              const AllocationFiles& files, const char* variable) {
  const std::string path = env_value(environment, variable);
  if (path.empty()) return std::nullopt;
  auto text = files.read(path);
  if (!text) return tl::unexpected(text.error().within(variable));
  return std::move(*text);
}

Found find_lsf(const EnvList& environment, const AllocationFiles& files) {
  const std::string job = fmt::format("LSF job {}", env_value(environment, "LSB_JOBID"));
  const std::string pairs = env_value(environment, "LSB_MCPU_HOSTS");
  if (!strip_blanks(pairs).empty()) {
    SlotCounter counter(fmt::format("{} (LSB_MCPU_HOSTS)", job));
    const auto words = split_blanks(pairs);
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const auto added = counter.add(words[i], i + 1 < words.size() ? words[i + 1] : "");
      if (!added) return tl::unexpected(added.error());
    }
    return counter.finish();
  }
  auto text = read_named(environment, files, "LSB_DJOB_HOSTFILE");
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::nullopt;
  return from_lines(std::move(**text), fmt::format("{} (LSB_DJOB_HOSTFILE)", job), false);
}

Found find_pbs(const EnvList& environment, const AllocationFiles& files) {
  auto text = read_named(environment, files, "PBS_NODEFILE");
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::nullopt;
  return from_lines(std::move(**text),
                    fmt::format("PBS job {} (PBS_NODEFILE)", env_value(environment, "PBS_JOBID")),
                    false);
}

Found find_sge(const EnvList& environment, const AllocationFiles& files) {
  auto text = read_named(environment, files, "PE_HOSTFILE");
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::nullopt;
  return from_lines(std::move(**text),
                    fmt::format("SGE job {} (PE_HOSTFILE)", env_value(environment, "JOB_ID")),
                    true);
}

Found from_hostfile(const AllocationFiles& files, const std::string& path, std::string source) {
  const auto text = files.read(path);
  if (!text) return tl::unexpected(text.error().within(source));
  auto hosts = parse_hostfile(*text, path, nullptr);
  if (!hosts) return tl::unexpected(hosts.error());
  return Allocation{std::move(*hosts), std::move(source), {}};
}

// mpi-operator names its file to Open MPI, Intel MPI and MPICH, and always mounts it in one place.
Found find_mpi_operator(const EnvList& environment, const AllocationFiles& files) {
  constexpr const char* kMounted = "/etc/mpi/hostfile";
  for (const char* variable : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                               "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}) {
    const std::string path = env_value(environment, variable);
    if (!path.empty()) {
      return from_hostfile(files, path, fmt::format("{} ({})", path, variable));
    }
  }
  if (!files.exists(kMounted)) return std::nullopt;
  return from_hostfile(files, kMounted, kMounted);
}

using TaskHosts = std::map<std::string, std::vector<std::string>>;  // by the name of the task

// Where a job has tasks that are called workers, the others only start it.
std::vector<std::string> pick_workers(const TaskHosts& tasks) {
  std::vector<std::string> workers;
  std::vector<std::string> all;
  for (const auto& [task, hosts] : tasks) {
    std::string lower = task;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    all.insert(all.end(), hosts.begin(), hosts.end());
    if (lower.find("worker") == std::string::npos) continue;
    workers.insert(workers.end(), hosts.begin(), hosts.end());
  }
  return workers.empty() ? all : workers;
}

void add_names(std::string_view text, std::vector<std::string>& names) {
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(",\n"), text.size());
    const auto name = strip_blanks(text.substr(0, end));
    if (!name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// VC_TASK_HOSTS holds "job-task-0.job,job-task-1.job".
TaskHosts volcano_variables(const EnvList& environment) {
  constexpr std::string_view kPrefix = "VC_";
  constexpr std::string_view kSuffix = "_HOSTS";
  TaskHosts tasks;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    if (name.size() <= kPrefix.size() + kSuffix.size()) continue;
    add_names(value, tasks[name]);
  }
  return tasks;
}

Result<TaskHosts> volcano_files(const AllocationFiles& files) {
  constexpr const char* kFolder = "/etc/volcano";
  TaskHosts tasks;
  for (const std::string& name : files.list(kFolder)) {
    if (!name.ends_with(".host")) continue;
    const auto text = files.read(fmt::format("{}/{}", kFolder, name));
    if (!text) return tl::unexpected(text.error());
    add_names(*text, tasks[name]);
  }
  return tasks;
}

Found find_volcano(const EnvList& environment, const AllocationFiles& files) {
  std::string source = "Volcano's VC_*_HOSTS";
  auto tasks = volcano_variables(environment);
  if (tasks.empty()) {
    auto from_files = volcano_files(files);
    if (!from_files) return tl::unexpected(from_files.error());
    tasks = std::move(*from_files);
    source = "Volcano's /etc/volcano/*.host";
  }
  const auto names = pick_workers(tasks);
  if (names.empty()) return std::nullopt;
  std::vector<HostSpec> hosts;
  for (const std::string& name : names) {
    if (!is_host_name(name)) {
      return make_error(ExitCode::kUsage, "{}: {} is no host; name the hosts with -H", source,
                        show(name));
    }
    hosts.push_back({.name = name});
  }
  return Allocation{std::move(hosts), std::move(source), {}};
}

}  // namespace

Result<std::optional<Allocation>> find_allocation(const EnvList& environment,
                                                  const AllocationFiles& files) {
  auto slurm = find_slurm_allocation(environment);
  if (!slurm || *slurm) return slurm;
  for (const auto find : {find_lsf, find_pbs, find_sge, find_mpi_operator, find_volcano}) {
    auto found = find(environment, files);
    if (!found || *found) return found;
  }
  return std::nullopt;
}

}  // namespace hvd
