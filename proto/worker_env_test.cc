#include "proto/worker_env.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(WorkerEnv, DeniesThePersonsOwnAndOtherLaunchersRanks) {
  for (const char* name : {"HOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "RANK", "SLURM_PROCID",
                           "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "HVDRUN_JOB_ID"}) {
    EXPECT_TRUE(is_denied(name)) << name;
  }
  for (const char* name : {"PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "LANG",
                           "HOROVOD_FUSION_THRESHOLD", "HOMEBREW", "OMP_NUM_THREADS"}) {
    EXPECT_FALSE(is_denied(name)) << name;
  }
}

TEST(WorkerEnv, SplitKeepsBytesAndEqualsSigns) {
  const char* const entries[] = {"A=x=y", "B=", "no_equals", "=odd", "C=\xff\n", nullptr};
  EXPECT_EQ(split_environ(entries), (EnvList{{"A", "x=y"}, {"B", ""}, {"C", "\xff\n"}}));
  EXPECT_TRUE(split_environ(nullptr).empty());
}

TEST(WorkerEnv, LaterLayersWinAndDefaultsOnlyFill) {
  const EnvList node = {{"A", "node"}, {"B", "node"}};
  const EnvList launcher = {{"B", "launcher"}, {"C", ""}};
  const EnvList merged = merge_env({&node, &launcher}, {{"C", "default"}, {"D", "default"}});
  EXPECT_EQ(merged, (EnvList{{"A", "node"}, {"B", "launcher"}, {"C", ""}, {"D", "default"}}));
}

TEST(WorkerEnv, RankVariablesFollowTorchAndHorovod) {
  const EnvList env = rank_env({.rank = 9,
                                .size = 32,
                                .local_rank = 1,
                                .local_size = 8,
                                .cross_rank = 1,
                                .cross_size = 4,
                                .node = 1,
                                .num_nodes = 4,
                                .host = "node2"});
  EXPECT_EQ(find_env(env, "RANK"), "9");
  EXPECT_EQ(find_env(env, "GROUP_RANK"), "1");
  EXPECT_EQ(find_env(env, "HOROVOD_CROSS_SIZE"), "4");
  EXPECT_EQ(find_env(env, "HOROVOD_HOSTNAME"), "node2");
  EXPECT_EQ(find_env(env, "ABSENT"), std::nullopt);
}

TEST(WorkerEnv, InterfaceHintsOnlyBetweenNodes) {
  EXPECT_EQ(find_env(node_env_if_unset(8, 1, "eth0"), "NCCL_SOCKET_IFNAME"), std::nullopt);
  EXPECT_EQ(find_env(node_env_if_unset(8, 4, "eth0"), "NCCL_SOCKET_IFNAME"), "=eth0");
  EXPECT_EQ(find_env(node_env_if_unset(8, 4, "eth0"), "GLOO_SOCKET_IFNAME"), "eth0");
  EXPECT_EQ(find_env(node_env_if_unset(1, 4, ""), "GLOO_SOCKET_IFNAME"), std::nullopt);
}

TEST(WorkerEnv, OneThreadEachOnlyWhenRanksShareANode) {
  EXPECT_EQ(find_env(node_env_if_unset(1, 1, ""), "OMP_NUM_THREADS"), std::nullopt);
  EXPECT_EQ(find_env(node_env_if_unset(2, 1, ""), "OMP_NUM_THREADS"), "1");
}

}  // namespace
}  // namespace hvd
