#include "launcher/slurm_allocation.h"

#include <array>
#include <numeric>

#include "base/parse_number.h"
#include "launcher/host_list_builder.h"
#include "launcher/host_range.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr const char* kNodeList = "SLURM_JOB_NODELIST";
constexpr const char* kTasks = "SLURM_TASKS_PER_NODE";

// What the user gave to sbatch or salloc for the tasks of the job: srun would take it for ours.
constexpr std::array kTaskSettings = {
    "SLURM_NTASKS",          "SLURM_NPROCS",        "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_GPU",  "SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK",
    "SLURM_TRES_PER_TASK",   "SLURM_CPUS_PER_GPU",  "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",     "SLURM_MEM_PER_NODE",  "SLURM_DISTRIBUTION",
    "SLURM_CPU_BIND",        "SLURM_GPU_BIND",      "SLURM_TRES_BIND",
    "SLURM_MEM_BIND",        "SLURM_HINT",          "SLURM_EXACT",
    "SLURM_EXCLUSIVE",       "SLURM_LABELIO",       "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",      "SLURM_STDERRMODE",    "SLURM_TASK_PROLOG",
    "SLURM_TASK_EPILOG",     "SLURM_EXPORT_ENV",    "SLURM_WAIT",
    "SLURM_ARBITRARY",       "SLURM_HOSTFILE",      "SLURM_STEP_GRES",
    "SLURM_THREADS_PER_CORE"};

// "2(x3),1" is 2 2 2 1.
Result<std::vector<std::uint32_t>> parse_tasks(std::string_view text) {
  const auto wrong = [text] {
    return make_error(ExitCode::kUsage, "{} has {}, which is no list like 8(x4),2; use -H", kTasks,
                      show(text));
  };
  std::vector<std::uint32_t> tasks;
  for (const std::string_view item : split_host_items(text)) {
    const auto open = item.find("(x");
    const auto count = parse_number<std::uint32_t>(item.substr(0, open));
    auto times = std::optional<std::uint32_t>(1);
    if (open != std::string_view::npos) {
      if (!item.ends_with(')')) return wrong();
      times = parse_number<std::uint32_t>(item.substr(open + 2, item.size() - open - 3));
    }
    if (!count || *count > kMostSlots || !times || *times > kMostHosts - tasks.size()) {
      return wrong();
    }
    tasks.insert(tasks.end(), *times, *count);
  }
  return tasks;
}

// Slots of each of `num_hosts` hosts; nullopt: not told.
Result<std::vector<std::optional<std::uint32_t>>> decide_slots(const EnvList& environment,
                                                               std::size_t num_hosts) {
  const auto gpus = parse_number<std::uint32_t>(env_value(environment, "SLURM_GPUS_ON_NODE"));
  const bool has_tasks = find_env(environment, "SLURM_NTASKS").has_value() ||
                         find_env(environment, "SLURM_NTASKS_PER_NODE").has_value();
  std::vector<std::optional<std::uint32_t>> slots(num_hosts);
  if (!has_tasks && gpus && *gpus > 0 && *gpus <= kMostSlots) {
    slots.assign(num_hosts, *gpus);
    return slots;
  }
  const std::string text = env_value(environment, kTasks);
  if (text.empty()) return slots;
  const auto tasks = parse_tasks(text);
  if (!tasks) return tl::unexpected(tasks.error());
  if (tasks->size() != num_hosts) {
    return make_error(ExitCode::kUsage, "{} tells of {} hosts and {} of {}; use -H", kNodeList,
                      num_hosts, kTasks, tasks->size());
  }
  slots.assign(tasks->begin(), tasks->end());
  return slots;
}

Result<std::vector<std::string>> expand_nodes(std::string_view list) {
  std::vector<std::string> nodes;
  for (const std::string_view item : split_host_items(list)) {
    const auto names = expand_host_range(item);
    if (!names) return tl::unexpected(names.error().within(kNodeList));
    nodes.insert(nodes.end(), names->begin(), names->end());
  }
  return nodes;
}

}  // namespace

Result<std::optional<Allocation>> find_slurm_allocation(const EnvList& environment) {
  const std::string list = env_value(environment, kNodeList);
  const std::string job = env_value(environment, "SLURM_JOB_ID");
  if (list.empty() || job.empty()) return std::nullopt;
  const auto nodes = expand_nodes(list);
  if (!nodes) return tl::unexpected(nodes.error());
  const auto slots = decide_slots(environment, nodes->size());
  if (!slots) return tl::unexpected(slots.error());
  HostListBuilder builder(nullptr);
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    HostSpec host;
    host.name = (*nodes)[i];
    host.slots = (*slots)[i];
    if (!is_host_name(host.name)) {
      return make_error(ExitCode::kUsage, "{} has {}, which is no host; use -H", kNodeList,
                        show(host.name));
    }
    if (auto added = builder.add(std::move(host)); !added) return tl::unexpected(added.error());
  }
  auto hosts = builder.finish();
  if (!hosts) return tl::unexpected(hosts.error().within(kNodeList));
  return Allocation{std::move(*hosts), fmt::format("Slurm job {} ({})", job, kNodeList),
                    srun_words(environment)};
}

// Buffered, slurmstepd would hold back what is no whole line; --unbuffered gives the task a
// terminal without output processing for its output, and its input stays a pipe.
std::vector<std::string> srun_words(const EnvList& environment) {
  std::vector<std::string> words;
  for (const char* name : kTaskSettings) {
    if (!find_env(environment, name)) continue;
    if (words.empty()) words.emplace_back("env");
    words.insert(words.end(), {"-u", name});
  }
  words.insert(words.end(), {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist={host}",
                             "--cpu-bind=none", "--mem=0", "--mpi=none", "--unbuffered", "--quiet",
                             "--export=ALL", "--chdir=/", "--kill-on-bad-exit=0", "--wait=0"});
  return words;
}

}  // namespace hvd
