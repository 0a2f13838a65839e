#include "launcher/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "launcher/slurm_allocation.h"

namespace hvd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using FileMap = std::map<std::string, std::string>;

AllocationFiles files_of(const FileMap& map) {
  return {.read = [map](const std::string& path) -> Result<std::string> {
            const auto found = map.find(path);
            if (found != map.end()) return found->second;
            return make_error(ExitCode::kUsage, "{} cannot be read", path);
          },
          .exists = [map](const std::string& path) { return map.contains(path); },
          .list =
              [map](const std::string& folder) {
                std::vector<std::string> names;
                for (const auto& [path, text] : map) {
                  if (path.starts_with(folder + "/"))
                    names.push_back(path.substr(folder.size() + 1));
                }
                return names;
              }};
}

// "source: hosts", "none" or the error.
std::string brief(const EnvList& environment, const FileMap& files = {}) {
  const auto found = find_allocation(environment, files_of(files));
  if (!found) return "error: " + found.error().message;
  if (!*found) return "none";
  return fmt::format("{}: {}", (*found)->source, format_hosts((*found)->hosts));
}

EnvList slurm(EnvList more) {
  more.emplace_back("SLURM_JOB_ID", "7");
  return more;
}

TEST(Allocation, IsNoneWithoutASchedulersTraces) {
  EXPECT_EQ(brief({}), "none");
  EXPECT_EQ(brief({{"SLURM_JOB_NODELIST", "n1"}}), "none") << "no job id: a leftover";
  EXPECT_EQ(brief({{"PBS_NODEFILE", ""}, {"VC_TASK_INDEX", "0"}}), "none");
}

TEST(Allocation, SlurmGivesNodesAndTasks) {
  const std::string source = "Slurm job 7 (SLURM_JOB_NODELIST): ";
  const std::vector<std::pair<EnvList, std::string>> cases = {
      {{{"SLURM_JOB_NODELIST", "n[01-03]"}, {"SLURM_TASKS_PER_NODE", "8(x2),4"}},
       "n01:8,n02:8,n03:4"},
      {{{"SLURM_JOB_NODELIST", "a[1,3],b2"}, {"SLURM_TASKS_PER_NODE", "2(x3)"}}, "a1:2,a3:2,b2:2"},
      {{{"SLURM_JOB_NODELIST", "n1"}}, "n1"},
      // No number of tasks was asked for: one for each GPU.
      {{{"SLURM_JOB_NODELIST", "n[1-2]"},
        {"SLURM_TASKS_PER_NODE", "1(x2)"},
        {"SLURM_GPUS_ON_NODE", "8"}},
       "n1:8,n2:8"},
      {{{"SLURM_JOB_NODELIST", "n[1-2]"},
        {"SLURM_TASKS_PER_NODE", "2(x2)"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_GPUS_ON_NODE", "8"}},
       "n1:2,n2:2"},
  };
  for (const auto& [environment, hosts] : cases)
    EXPECT_EQ(brief(slurm(environment)), source + hosts);
}

TEST(Allocation, SlurmsOddValuesAreErrors) {
  const std::vector<std::pair<EnvList, const char*>> cases = {
      {{{"SLURM_JOB_NODELIST", "n[1-"}}, "SLURM_JOB_NODELIST: \"n[1-\" has a bracket"},
      {{{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2"}}, "tells of 2 hosts"},
      {{{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "2(x"}}, "which is no list like"},
      {{{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "1(x99999999)"}}, "no list like"},
      {{{"SLURM_JOB_NODELIST", "(null)"}}, "\"(null)\", which is no host"},
  };
  for (const auto& [environment, text] : cases) {
    EXPECT_THAT(brief(slurm(environment)), HasSubstr(text));
  }
}

TEST(Allocation, SrunTakesNothingOfTheJobsTasks) {
  const auto words = srun_words({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}});
  ASSERT_GE(words.size(), 5U);
  EXPECT_EQ(words[0], "env");
  EXPECT_EQ(words[1], "-u");
  EXPECT_EQ(words[2], "SLURM_NTASKS");
  EXPECT_EQ(words[3], "srun");
  for (const char* word : {"--overlap", "--ntasks=1", "--nodelist={host}", "--unbuffered"}) {
    EXPECT_THAT(words, Contains(word));
  }
  EXPECT_EQ(srun_words({}).front(), "srun");
}

TEST(Allocation, OtherSchedulersGiveNamesAndSlots) {
  struct Case {
    EnvList environment;
    FileMap files;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {{{"LSB_JOBID", "5"}, {"LSB_MCPU_HOSTS", "a 4 b 2 "}},
       {},
       "LSF job 5 (LSB_MCPU_HOSTS): a:4,b:2"},
      {{{"LSB_JOBID", "5"}, {"LSB_DJOB_HOSTFILE", "/f"}},
       {{"/f", "a\na\nb\n"}},
       "LSF job 5 (LSB_DJOB_HOSTFILE): a:2,b:1"},
      {{{"PBS_JOBID", "9.srv"}, {"PBS_NODEFILE", "/f"}},
       {{"/f", "a\nb\na\nb"}},
       "PBS job 9.srv (PBS_NODEFILE): a:2,b:2"},
      {{{"JOB_ID", "3"}, {"PE_HOSTFILE", "/f"}},
       {{"/f", "a.x 8 all.q@a.x UNDEFINED\nb.x 4 all.q@b.x <NULL>\n"}},
       "SGE job 3 (PE_HOSTFILE): a.x:8,b.x:4"},
      {{},
       {{"/etc/mpi/hostfile", "job-worker-0.job slots=2\njob-worker-1.job:4\n"}},
       "/etc/mpi/hostfile: job-worker-0.job:2,job-worker-1.job:4"},
      {{{"OMPI_MCA_orte_default_hostfile", "/h"}},
       {{"/h", "w0 slots=1\n"}},
       "/h (OMPI_MCA_orte_default_hostfile): w0:1"},
      {{{"HYDRA_HOST_FILE", "/h"}}, {{"/h", "w0:1\n"}}, "/h (HYDRA_HOST_FILE): w0:1"},
      {{{"VC_MASTER_HOSTS", "j-master-0.j"}, {"VC_MPIWORKER_HOSTS", "j-w-0.j,j-w-1.j"}},
       {},
       "Volcano's VC_*_HOSTS: j-w-0.j,j-w-1.j"},
      {{},
       {{"/etc/volcano/a.host", "j-a-0.j\nj-a-1.j\n"}, {"/etc/volcano/b.host", "j-b-0.j"}},
       "Volcano's /etc/volcano/*.host: j-a-0.j,j-a-1.j,j-b-0.j"},
  };
  for (const auto& [environment, files, expected] : cases) {
    EXPECT_EQ(brief(environment, files), expected);
  }
}

TEST(Allocation, WhatIsNamedMustBeThereAndMakeSense) {
  EXPECT_THAT(brief({{"PBS_NODEFILE", "/none"}}), HasSubstr("PBS_NODEFILE: /none cannot be read"));
  EXPECT_THAT(brief({{"PBS_NODEFILE", "/f"}}, {{"/f", "\n"}}), HasSubstr("no host with slots"));
  EXPECT_THAT(brief({{"LSB_MCPU_HOSTS", "a 4 b"}}), HasSubstr("\"b \" is no host with slots"));
  EXPECT_THAT(brief({{"PE_HOSTFILE", "/f"}}, {{"/f", "a x\n"}}), HasSubstr("\"a x\" is no host"));
  EXPECT_THAT(brief({{"VC_WORKER_HOSTS", "-a"}}), HasSubstr("\"-a\" is no host"));
}

TEST(Allocation, SlurmComesFirstAndAloneBringsAWay) {
  const EnvList both = slurm({{"SLURM_JOB_NODELIST", "n1"}, {"LSB_MCPU_HOSTS", "a 4"}});
  const auto found = find_allocation(both, files_of({}));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->hosts.front().name, "n1");
  EXPECT_THAT((*found)->rsh, Contains("srun"));
  EXPECT_THAT((*find_allocation({{"LSB_MCPU_HOSTS", "a 4"}}, files_of({})))->rsh, IsEmpty());
}

}  // namespace
}  // namespace hvd
