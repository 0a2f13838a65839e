#include "runtime/worker_facts.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hvd {
namespace {

namespace fs = std::filesystem;

TEST(WorkerFacts, TellsWhatTheRankIs) {
  std::string folder = testing::TempDir() + "factsXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (const auto& [port, state] : {std::pair("mlx5_0/ports/1", "4: ACTIVE"),
                                    {"mlx5_1/ports/1", "1: DOWN"},
                                    {"mlx5_1/ports/2", "4: ACTIVE"},
                                    {"mlx5_2/ports/1", "2: INIT"}}) {
    const fs::path path = fs::path(folder) / "class/infiniband" / port;
    fs::create_directories(path);
    std::ofstream(path / "state") << state << '\n';
  }
  fs::create_directories(folder + "/class/infiniband/mlx5_3");
  std::ofstream(folder + "/nccl.conf") << "NCCL_PROTO=Simple\n";
  Place place;
  place.rank = 3;
  place.size = 4;
  place.local_rank = 1;
  place.host = "node2";
  InitOptions options;
  options.plan = "a model";
  options.torch_version = "2.11.0";
  const auto facts = worker_facts(place, 7, options,
                                  {{"NCCL_ALGO", "Ring"},
                                   {"NCCL_CONF_FILE", folder + "/nccl.conf"},
                                   {"HVDRUN_SYSFS", folder},
                                   {"HVDRUN_ALLOW_SHARED_GPU", "1"}},
                                  {1000, 2000});
  fs::remove_all(folder);
  EXPECT_EQ(facts.generation(), 7U);
  EXPECT_EQ(facts.rank(), 3U);
  EXPECT_EQ(facts.size(), 4U);
  EXPECT_EQ(facts.local_rank(), 1U);
  EXPECT_EQ(facts.host(), "node2");
  EXPECT_EQ(facts.pid(), getpid());
  EXPECT_FALSE(facts.runtime_version().empty());
  EXPECT_EQ(facts.torch_version(), "2.11.0");
  EXPECT_TRUE(facts.may_share_gpu());
  EXPECT_EQ(facts.plan(), "a model");
  EXPECT_EQ(facts.num_rdma_devices(), 2U);
  EXPECT_EQ(facts.nofile_soft(), 1000U);
  EXPECT_EQ(facts.nofile_hard(), 2000U);
  EXPECT_THAT(facts.nccl_settings(),
              testing::IsSupersetOf({"NCCL_ALGO=Ring", "NCCL_PROTO=Simple"}));
}

TEST(WorkerFacts, EqualPlansHaveEqualHashesAndOthersNot) {
  const auto hash_of = [](const char* plan) {
    InitOptions options;
    options.plan = plan;
    return worker_facts({}, 0, options, {}, {}).plan_hash();
  };
  EXPECT_EQ(hash_of("batch 4"), hash_of("batch 4"));
  EXPECT_NE(hash_of("batch 4"), hash_of("batch 8"));
  EXPECT_EQ(hash_of(""), 0U);
}

TEST(WorkerFacts, AMachineWithoutRdmaHasNone) { EXPECT_EQ(count_rdma_devices("/none"), 0U); }

}  // namespace
}  // namespace hvd
