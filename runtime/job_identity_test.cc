#include "runtime/job_identity.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

Place place_of(const char* launcher, int rank = 1, int size = 4) {
  Place place;
  place.launcher = launcher;
  place.rank = rank;
  place.size = size;
  return place;
}

TEST(JobIdentity, IsWhatTheLauncherCallsTheJobAndItsSize) {
  const EnvList step = {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}};
  const std::vector<std::tuple<EnvList, const char*, const char*>> table = {
      {{{"TORCHELASTIC_RUN_ID", "abc"}}, "torchrun", "torchrun run abc, 4 ranks"},
      {{{"TORCHELASTIC_RUN_ID", "none"}}, "torchrun", "4 ranks"},
      {step, "srun", "srun step 77.0, 4 ranks"},
      {{{"SLURM_JOB_ID", "77"}, {"SLURM_STEPID", "2"}}, "srun", "srun step 77.2, 4 ranks"},
      {{{"PMIX_NAMESPACE", "prte-n0-12@1"}}, "mpirun", "mpirun job prte-n0-12@1, 4 ranks"},
      {{{"OMPI_MCA_ess_base_jobid", "99"}}, "mpirun", "mpirun job 99, 4 ranks"},
      {step, "mpirun", "4 ranks"},
      {{}, "torchrun", "4 ranks"},
  };
  for (const auto& [environment, launcher, expected] : table) {
    EXPECT_EQ(job_identity(environment, place_of(launcher)), expected);
  }
  EXPECT_NE(job_identity({}, place_of("", 0, 2)), job_identity({}, place_of("", 0, 3)));
}

TEST(JobIdentity, RanksByHandAreOfTheirStepOnlyWhereAllOfThemAre) {
  const EnvList task = {
      {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(job_identity(task, place_of("torchrun")), "srun step 77.0, 4 ranks");
  EXPECT_EQ(job_identity(task, place_of("torchrun", 2)), "4 ranks");
  EXPECT_EQ(job_identity(task, place_of("torchrun", 1, 8)), "8 ranks");
}

TEST(JobIdentity, AnyNameBecomesAShortPrintableOne) {
  const auto named = [](const std::string& name) {
    return job_identity({{"TORCHELASTIC_RUN_ID", name}}, place_of("torchrun"));
  };
  const std::string a = named(std::string(5000, 'x') + "a");
  const std::string b = named(std::string(5000, 'x') + "b");
  EXPECT_LE(a.size(), 200U);
  EXPECT_NE(a, b);
  EXPECT_NE(named("\n\xff"), named("\n\xfe"));
  for (const char c : named("\n\xff\x01")) EXPECT_TRUE(c >= ' ' && c <= '~');
}

}  // namespace
}  // namespace hvd
