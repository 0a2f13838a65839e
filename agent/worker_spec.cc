#include "agent/worker_spec.h"

#include <fmt/format.h>

#include <set>

#include "agent/job_dir.h"
#include "agent/shim/frames.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

EnvList to_list(const google::protobuf::RepeatedPtrField<v1::EnvVar>& variables) {
  EnvList list;
  list.reserve(static_cast<std::size_t>(variables.size()));
  for (const v1::EnvVar& variable : variables) list.emplace_back(variable.name(), variable.value());
  return list;
}

constexpr const char* kErrorFile = "TORCHELASTIC_ERROR_FILE";

EnvList agent_env(const SpawnContext& context, std::uint32_t rank) {
  EnvList result = {{"HVDRUN_RENDEZVOUS", rendezvous_path(context.job_dir)},
                    {"PWD", context.hello.cwd()}};
  if (!find_env(to_list(context.hello.user_env()), kErrorFile)) {
    result.emplace_back(kErrorFile, error_file(context.job_dir, rank));
  }
  if (!context.timeline_dir.empty()) result.emplace_back("HVDRUN_TIMELINE", context.timeline_dir);
  return result;
}

// Half of a frame: one worker may go beyond it.
constexpr std::size_t kMaxPartBytes = kMaxFrameBytes / 2;

// An agent may stand inside another job: of hvdrun, whose timeline is not this job's, or of another
// launcher (srun), whose ranks are not this job's. One on the launcher's machine has inherited what
// the user keeps from the ranks.
EnvList without_foreign(EnvList node_env, const v1::Hello& hello) {
  const auto& kept = hello.kept_from_ranks();
  const std::set<std::string> names(kept.begin(), kept.end());
  std::erase_if(node_env, [&names](const auto& variable) {
    const std::string& name = variable.first;
    return name.starts_with("HVDRUN_TIMELINE") || is_of_another_launcher(name) ||
           names.contains(name);
  });
  return node_env;
}

void set_words(const v1::Hello& hello, const v1::Spawn& spawn, const v1::Spawn::Worker& worker,
               v1::WorkerSpec* spec) {
  const int place = static_cast<int>(spawn.extra_word_at());
  for (int i = 0; i <= hello.argv_size(); ++i) {
    if (i == place && !worker.extra_word().empty()) spec->add_argv(worker.extra_word());
    if (i < hello.argv_size()) spec->add_argv(hello.argv(i));
  }
}

}  // namespace

EnvList base_env(const EnvList& node_env, const v1::Hello& hello) {
  const EnvList node = without_foreign(node_env, hello);
  const EnvList launcher = to_list(hello.launcher_env());
  const EnvList user = to_list(hello.user_env());
  return merge_env({&node, &launcher, &user}, {});
}

std::string error_file(std::string_view job_dir, std::uint32_t rank) {
  return fmt::format("{}/error.{}.json", job_dir, rank);
}

std::vector<v1::ShimSpawn> make_shim_spawns(const SpawnContext& context, const v1::Spawn& spawn) {
  const EnvList base = base_env(context.node_env, context.hello);
  const EnvList common = to_list(spawn.env());
  const EnvList if_unset = to_list(spawn.env_if_unset());
  std::vector<v1::ShimSpawn> parts(1);
  std::size_t part_bytes = 0;
  for (const v1::Spawn::Worker& worker : spawn.workers()) {
    v1::WorkerSpec spec;
    spec.set_rank(worker.rank());
    spec.set_local_rank(worker.local_rank());
    spec.set_has_input(worker.has_input());
    spec.set_has_pmi(spawn.has_pmi());
    set_words(context.hello, spawn, worker, &spec);
    spec.set_no_core(worker.no_core());
    spec.set_nofile_limit(context.hello.nofile_limit());
    spec.set_cwd(context.hello.cwd());
    spec.set_executable(context.executable);
    const EnvList own = to_list(worker.env());
    const EnvList ours = agent_env(context, worker.rank());
    for (const auto& [name, value] : merge_env({&base, &common, &own, &ours}, if_unset)) {
      v1::EnvVar* variable = spec.add_env();
      variable->set_name(name);
      variable->set_value(value);
    }
    const std::size_t bytes = spec.ByteSizeLong();
    if (part_bytes > 0 && part_bytes + bytes > kMaxPartBytes) {
      parts.back().set_more(true);
      parts.emplace_back();
      part_bytes = 0;
    }
    part_bytes += bytes;
    *parts.back().add_workers() = std::move(spec);
  }
  return parts;
}

}  // namespace hvd
