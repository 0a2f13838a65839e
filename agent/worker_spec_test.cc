#include "agent/worker_spec.h"

#include <gtest/gtest.h>

#include "agent/shim/frames.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

TEST(WorkerSpec, LaterLayersWinAndAgentAddsItsOwn) {
  SpawnContext context;
  context.node_env = {{"PATH", "/node"}, {"A", "node"}, {"B", "node"}, {"GRPC_TRACE", "all"}};
  context.executable = "/bin/echo";
  context.job_dir = "/run/job";
  const auto set = [](v1::EnvVar* variable, const char* name, const char* value) {
    variable->set_name(name);
    variable->set_value(value);
  };
  set(context.hello.add_launcher_env(), "A", "launcher");
  set(context.hello.add_user_env(), "C", "user");
  context.hello.add_argv("echo");
  context.hello.set_cwd("/work");
  v1::Spawn spawn;
  set(spawn.add_env(), "MASTER_PORT", "61000");
  set(spawn.add_env_if_unset(), "B", "unset");
  set(spawn.add_env_if_unset(), "OMP_NUM_THREADS", "1");
  v1::Spawn::Worker* worker = spawn.add_workers();
  worker->set_rank(3);
  set(worker->add_env(), "RANK", "3");
  const auto parts = make_shim_spawns(context, spawn);
  ASSERT_EQ(parts.size(), 1U);
  const v1::ShimSpawn& made = parts.front();
  EXPECT_FALSE(made.more());
  ASSERT_EQ(made.workers_size(), 1);
  EnvList env;
  for (const auto& variable : made.workers(0).env())
    env.emplace_back(variable.name(), variable.value());
  const EnvList expected = {{"A", "launcher"},
                            {"B", "node"},
                            {"C", "user"},
                            {"GRPC_TRACE", "all"},
                            {"HVDRUN_RENDEZVOUS", "/run/job/rendezvous.sock"},
                            {"MASTER_PORT", "61000"},
                            {"OMP_NUM_THREADS", "1"},
                            {"PATH", "/node"},
                            {"PWD", "/work"},
                            {"RANK", "3"},
                            {"TORCHELASTIC_ERROR_FILE", "/run/job/error.3.json"}};
  EXPECT_EQ(env, expected);
  EXPECT_EQ(made.workers(0).executable(), "/bin/echo");
  EXPECT_EQ(made.workers(0).cwd(), "/work");
}

TEST(WorkerSpec, RanksOfAnotherLauncherAndWhatTheUserKeepsDoNotComeFromTheNode) {
  const EnvList node = {
      {"HOME", "/h"},     {"SLURM_NTASKS", "8"},       {"RANK", "7"},
      {"API_TOKEN", "t"}, {"HVDRUN_TIMELINE", "/old"}, {"CUDA_VISIBLE_DEVICES", "3"}};
  v1::Hello hello;
  hello.add_kept_from_ranks("API_TOKEN");
  EXPECT_EQ(base_env(node, hello), (EnvList{{"CUDA_VISIBLE_DEVICES", "3"}, {"HOME", "/h"}}));
}

TEST(WorkerSpec, ExtraWordStandsWhereTheLauncherSays) {
  SpawnContext context;
  for (const char* word : {"python", "train.py", "config"}) context.hello.add_argv(word);
  context.hello.set_nofile_limit(1024);
  for (const auto& [place, words] : std::vector<std::pair<std::uint32_t, std::string>>{
           {2, "python train.py --local-rank=1 config "},
           {3, "python train.py config --local-rank=1 "}}) {
    v1::Spawn spawn;
    spawn.set_extra_word_at(place);
    spawn.add_workers()->set_extra_word("--local-rank=1");
    const auto parts = make_shim_spawns(context, spawn);
    std::string joined;
    for (const std::string& word : parts.front().workers(0).argv()) joined += word + " ";
    EXPECT_EQ(joined, words);
    EXPECT_EQ(parts.front().workers(0).nofile_limit(), 1024U);
  }
}

TEST(WorkerSpec, ManyWorkersWithALargeEnvironmentTakeSeveralFrames) {
  SpawnContext context{{{"BIG", std::string(1U << 20U, 'x')}}, {}, "/bin/true", "/run/job"};
  v1::Spawn spawn;
  for (std::uint32_t rank = 0; rank < 40; ++rank) spawn.add_workers()->set_rank(rank);
  std::uint32_t next_rank = 0;
  const auto parts = make_shim_spawns(context, spawn);
  for (const v1::ShimSpawn& part : parts) {
    EXPECT_LT(part.ByteSizeLong(), kMaxFrameBytes);
    EXPECT_EQ(part.more(), &part != &parts.back());
    for (const auto& worker : part.workers()) EXPECT_EQ(worker.rank(), next_rank++);
  }
  EXPECT_EQ(next_rank, 40U);
}

}  // namespace
}  // namespace hvd
