#include "runtime/job_identity.h"

#include <fmt/format.h>

#include <optional>

#include "base/plural.h"
#include "base/stable_hash.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxName = 100;

// torchrun's own word for "no name was given" is "none".
std::string torchrun_name(const EnvList& environment) {
  const std::string run = env_value(environment, "TORCHELASTIC_RUN_ID");
  return run.empty() || run == "none" ? "" : "torchrun run " + run;
}

std::string srun_name(const EnvList& environment) {
  const std::string job = env_value(environment, "SLURM_JOB_ID");
  std::string step = env_value(environment, "SLURM_STEP_ID");
  if (step.empty()) step = env_value(environment, "SLURM_STEPID");
  return job.empty() || step.empty() ? "" : fmt::format("srun step {}.{}", job, step);
}

// Of PMIx (Open MPI from 4 on), of older ones, of PMI-1 where it has one.
std::string mpirun_name(const EnvList& environment) {
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"}) {
    const std::string job = env_value(environment, name);
    if (!job.empty()) return "mpirun job " + job;
  }
  return "";
}

// RANK and WORLD_SIZE by hand, of each task of a step.
bool is_rank_of_step(const EnvList& environment, const Place& place) {
  std::string size = env_value(environment, "SLURM_STEP_NUM_TASKS");
  if (size.empty()) size = env_value(environment, "SLURM_NTASKS");
  return env_value(environment, "SLURM_PROCID") == fmt::format_int(place.rank).str() &&
         size == fmt::format_int(place.size).str();
}

std::string name_of_job(const EnvList& environment, const Place& place) {
  if (place.launcher == "srun") return srun_name(environment);
  if (place.launcher == "mpirun") return mpirun_name(environment);
  std::string name = torchrun_name(environment);
  if (name.empty() && is_rank_of_step(environment, place)) name = srun_name(environment);
  return name;
}

// What is left out or replaced still tells names apart.
std::string printable(const std::string& name) {
  std::string text = name.substr(0, kMaxName);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text == name ? text : fmt::format("{}... ({:016x})", text, stable_hash(name));
}

}  // namespace

std::string job_identity(const EnvList& environment, const Place& place) {
  const std::string name = printable(name_of_job(environment, place));
  const std::string size = counted(static_cast<std::size_t>(place.size), "rank");
  return name.empty() ? size : fmt::format("{}, {}", name, size);
}

}  // namespace hvd
