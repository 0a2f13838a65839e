#include "proto/worker_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

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

TEST(WorkerEnv, LastRuleThatMatchesDecidesElseTheDenyList) {
  const auto travels = [](const char* name, const std::vector<EnvRule>& rules) {
    return does_travel(name, rules);
  };
  const EnvRule deny_all{false, "*"};
  const EnvRule allow_nccl{true, "NCCL_*"};
  EXPECT_TRUE(travels("PATH", {}));
  EXPECT_FALSE(travels("SLURM_JOB_ID", {}));
  EXPECT_TRUE(travels("SLURM_JOB_ID", {{true, "SLURM_JOB_*"}}));
  EXPECT_FALSE(travels("SLURM_PROCID", {{true, "SLURM_JOB_*"}}));
  EXPECT_FALSE(travels("API_TOKEN", {{false, "*_TOKEN"}}));
  EXPECT_FALSE(travels("PATH", {deny_all, allow_nccl}));
  EXPECT_TRUE(travels("NCCL_DEBUG", {deny_all, allow_nccl}));
  EXPECT_FALSE(travels("NCCL_DEBUG", {allow_nccl, deny_all}));
  EXPECT_TRUE(travels("nccl_debug", {{false, "NCCL_*"}}));
  EXPECT_FALSE(travels("HVDRUN_JOB_ID", {{true, "*"}}));
  EXPECT_EQ(filter_launcher_env({{"A", "1"}, {"B1", "2"}, {"HOME", "/h"}}, {{false, "B?"}}),
            (EnvList{{"A", "1"}}));
}

TEST(WorkerEnv, PatternsAreThoseOfAShell) {
  EXPECT_TRUE(matches_pattern("A*", "A"));
  EXPECT_TRUE(matches_pattern("*", "ANY"));
  EXPECT_TRUE(matches_pattern("A[0-9]", "A7"));
  EXPECT_FALSE(matches_pattern("A?", "A"));
  EXPECT_FALSE(matches_pattern("A", "AB"));
  EXPECT_TRUE(matches_pattern("A*", "A\xff"));
}

TEST(WorkerEnv, DeniedNamesAreKeptFromLocalRanksExceptANodesOwn) {
  const EnvList own = {{"HOME", "/h"}, {"PATH", "/bin"}, {"TOKEN", "t"}, {"NCCL_DEBUG", "INFO"}};
  std::vector<std::string> kept(kOwnGrpcNames.begin(), kOwnGrpcNames.end());
  EXPECT_EQ(kept_from_local_ranks(own, {}), kept);
  kept.push_back("TOKEN");
  EXPECT_EQ(kept_from_local_ranks(own, {{false, "*"}, {true, "NCCL_*"}}), kept);
}

TEST(WorkerEnv, WhatStaysHereReachesNoLocalRankEither) {
  EXPECT_THAT(kept_from_local_ranks({{"HVDRUN_GRACE", "3"}, {"A", "1"}}, {{true, "*"}}),
              testing::ElementsAre(kOwnGrpcNames[0], kOwnGrpcNames[1], "HVDRUN_GRACE"));
}

TEST(WorkerEnv, OtherLaunchersVariablesAreNobodysOwn) {
  for (const char* name : {"RANK", "SLURM_NTASKS", "PMI_FD", "TORCHELASTIC_RUN_ID", "CROSS_SIZE"}) {
    EXPECT_TRUE(is_of_another_launcher(name)) << name;
    EXPECT_FALSE(is_personal(name)) << name;
  }
  EXPECT_TRUE(is_personal("TMPDIR"));
  EXPECT_FALSE(is_of_another_launcher("HOME"));
}

TEST(WorkerEnv, DeepSpeedAndTorchpackFindTheirNames) {
  const EnvList rank = rank_env({.local_size = 8, .cross_rank = 1, .cross_size = 4, .host = "n"});
  EXPECT_EQ(find_env(rank, "LOCAL_SIZE"), "8");
  EXPECT_EQ(find_env(rank, "CROSS_RANK"), "1");
  EXPECT_EQ(find_env(rank, "CROSS_SIZE"), "4");
  EXPECT_EQ(find_env(node_env("j", 0, "10.0.0.1", 61000, ""), "MASTER_HOST"), "10.0.0.1:61000");
  EXPECT_EQ(find_env(node_env("j", 0, "fd00::1", 61000, ""), "MASTER_HOST"), "[fd00::1]:61000");
}

TEST(WorkerEnv, TorchrunsMarkStandsOnlyWhereItIsAskedFor) {
  EXPECT_EQ(find_env(rank_env({}), "TORCHELASTIC_RUN_ID"), std::nullopt);
  EXPECT_EQ(find_env(node_env("j", 0, "a", 1, ""), "TORCHELASTIC_RUN_ID"), std::nullopt);
  EXPECT_EQ(find_env(torchelastic_env("j"), "TORCHELASTIC_RUN_ID"), "j");
  EXPECT_EQ(find_env(torchelastic_env("j"), "TORCHELASTIC_USE_AGENT_STORE"), "False");
}

TEST(WorkerEnv, GrpcForksAndSpeaksNotHereWhateverTheUserWantsOfTheRanks) {
  setenv("GRPC_ENABLE_FORK_SUPPORT", "1", 1);
  setenv("GRPC_TRACE", "all", 1);
  const EnvList given = take_environment();
  EXPECT_EQ(find_env(given, "GRPC_ENABLE_FORK_SUPPORT"), "1");
  EXPECT_EQ(find_env(given, "GRPC_TRACE"), "all");
  EXPECT_STREQ(getenv("GRPC_ENABLE_FORK_SUPPORT"), "0");
  EXPECT_STREQ(getenv("GRPC_VERBOSITY"), "NONE");
  EXPECT_EQ(getenv("GRPC_TRACE"), nullptr);
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

TEST(WorkerEnv, HorovodIsToldItsStoreAndToUseGloo) {
  EXPECT_EQ(horovod_env("10.9.0.1", 40000), (EnvList{{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.9.0.1"},
                                                     {"HOROVOD_GLOO_RENDEZVOUS_PORT", "40000"},
                                                     {"HOROVOD_CONTROLLER", "gloo"},
                                                     {"HOROVOD_CPU_OPERATIONS", "gloo"}}));
  EXPECT_EQ(horovod_env_if_unset("lo"), (EnvList{{"HOROVOD_GLOO_IFACE", "lo"}}));
  EXPECT_TRUE(horovod_env_if_unset("").empty());
  // None of them comes from an outer job.
  for (const auto& [name, value] : horovod_env("", 0)) EXPECT_TRUE(is_denied(name)) << name;
  EXPECT_TRUE(is_denied("HOROVOD_GLOO_IFACE"));
}

TEST(WorkerEnv, OneThreadEachOnlyWhenRanksShareANode) {
  EXPECT_EQ(find_env(node_env_if_unset(1, 1, ""), "OMP_NUM_THREADS"), std::nullopt);
  EXPECT_EQ(find_env(node_env_if_unset(2, 1, ""), "OMP_NUM_THREADS"), "1");
}

}  // namespace
}  // namespace hvd
