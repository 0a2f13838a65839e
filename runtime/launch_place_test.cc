#include "runtime/launch_place.h"

#include <gmock/gmock.h>

#include "runtime/worker_exit.h"

namespace hvd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

EnvList with(EnvList environment, const EnvList& more) {
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

EnvList without(EnvList environment, const std::string& name) {
  std::erase_if(environment, [&](const auto& variable) { return variable.first == name; });
  return environment;
}

const EnvList kTorchrun = {{"RANK", "5"},
                           {"WORLD_SIZE", "8"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "4"},
                           {"GROUP_RANK", "1"},
                           {"GROUP_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "n0"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "none"},
                           {"TORCHELASTIC_RESTART_COUNT", "2"}};
const EnvList kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "5"},
                          {"OMPI_COMM_WORLD_SIZE", "8"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const EnvList kMpich = {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}};
const EnvList kSrun = {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"},  {"SLURM_LOCALID", "1"},
                       {"SLURM_NODEID", "1"}, {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}};
const EnvList kFolder = {{"HVDRUN_INIT", "file:///shared/run"}};

LaunchPlace place_of(const EnvList& environment) {
  const auto found = launch_place(environment, "machine");
  EXPECT_TRUE(found) << found.error().message;
  return found.value_or(LaunchPlace{});
}

std::string refusal_of(const EnvList& environment) {
  const auto found = launch_place(environment, "machine");
  if (found) return "accepted";
  EXPECT_EQ(found.error().code, ExitCode::kUsage);
  return found.error().message;
}

TEST(LaunchPlace, NoLauncherIsOneProcess) {
  const LaunchPlace found = place_of({{"HOME", "/root"}});
  EXPECT_EQ(found.way, MeetingWay::kNone);
  EXPECT_EQ(found.place.size, 1);
  EXPECT_EQ(found.place.local_size, 1);
  EXPECT_EQ(found.place.host, "machine");
  EXPECT_EQ(found.place.launcher, "");
}

TEST(LaunchPlace, APlaceToMeetWithoutARankIsRefused) {
  EXPECT_THAT(refusal_of(kFolder), HasSubstr("this process has no rank: each needs RANK"));
}

TEST(LaunchPlace, ReadsWhatHvdrunGives) {
  EnvList environment = rank_env({3, 4, 1, 2, 1, 2, 1, 2, "node2"});
  environment = with(environment, node_env("job", 1, "10.0.0.1", 61000, "10.0.0.2"));
  environment.emplace_back("HVDRUN_RENDEZVOUS", "/run/job/rendezvous.sock");
  const LaunchPlace found = place_of(environment);
  EXPECT_EQ(found.way, MeetingWay::kAgent);
  EXPECT_EQ(found.where, "/run/job/rendezvous.sock");
  EXPECT_EQ(found.address, "10.0.0.2");
  EXPECT_EQ(found.place.rank, 3);
  EXPECT_EQ(found.place.size, 4);
  EXPECT_EQ(found.place.local_rank, 1);
  EXPECT_EQ(found.place.local_size, 2);
  EXPECT_EQ(found.place.cross_rank, 1);
  EXPECT_EQ(found.place.cross_size, 2);
  EXPECT_EQ(found.place.host, "node2");
  EXPECT_EQ(found.place.launcher, "hvdrun");
}

TEST(LaunchPlace, AJobOfOneRankUnderHvdrunStillHasItsAgent) {
  EnvList environment = rank_env({0, 1, 0, 1, 0, 1, 0, 1, "n"});
  environment.emplace_back("HVDRUN_RENDEZVOUS", "/s");
  EXPECT_EQ(place_of(environment).way, MeetingWay::kAgent);
  EXPECT_EQ(place_of(environment).address, "127.0.0.1");
}

TEST(LaunchPlace, ReadsTorchrunAndMeetsBesideItsStore) {
  const LaunchPlace found = place_of(kTorchrun);
  EXPECT_EQ(found.place.launcher, "torchrun");
  EXPECT_EQ(found.place.rank, 5);
  EXPECT_EQ(found.place.local_rank, 1);
  EXPECT_EQ(found.place.local_size, 4);
  EXPECT_EQ(found.place.cross_rank, 1);
  EXPECT_EQ(found.place.cross_size, 2);
  EXPECT_EQ(found.generation, 2U);
  EXPECT_EQ(found.way, MeetingWay::kTcp);
  EXPECT_EQ(found.where, "n0");
  EXPECT_EQ(found.port, 29501);
}

TEST(LaunchPlace, OneProcessOfTorchrunMeetsNobody) {
  EXPECT_EQ(place_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).way, MeetingWay::kNone);
}

TEST(LaunchPlace, ReadsMpirun) {
  for (const EnvList& environment : {kOpenMpi, kMpich}) {
    const LaunchPlace found = place_of(with(environment, kFolder));
    EXPECT_EQ(found.place.launcher, "mpirun");
    EXPECT_EQ(found.place.rank, 5);
    EXPECT_EQ(found.place.size, 8);
    EXPECT_EQ(found.place.local_rank, 1);
    EXPECT_EQ(found.place.cross_size, 0);
    EXPECT_EQ(found.way, MeetingWay::kFolder);
    EXPECT_EQ(found.where, "/shared/run");
  }
}

TEST(LaunchPlace, ReadsSrun) {
  const LaunchPlace found = place_of(with(kSrun, kFolder));
  EXPECT_EQ(found.place.launcher, "srun");
  EXPECT_EQ(found.place.rank, 5);
  EXPECT_EQ(found.place.size, 8);
  EXPECT_EQ(found.place.local_rank, 1);
  EXPECT_EQ(found.node, "1");
  // A step that is smaller than its job.
  const EnvList smaller = with(with(kSrun, kFolder), {{"SLURM_STEP_NUM_TASKS", "6"}});
  EXPECT_EQ(place_of(smaller).place.size, 6);
}

TEST(LaunchPlace, ABatchScriptIsOneProcess) {
  EXPECT_EQ(place_of(without(kSrun, "SLURM_STEP_ID")).place.size, 1);
  // What salloc's shell has.
  EXPECT_EQ(place_of({{"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "77"}}).place.size, 1);
}

TEST(LaunchPlace, TheInnerLauncherCounts) {
  const EnvList inside = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(place_of(with(kTorchrun, inside)).place.launcher, "torchrun");
  EXPECT_EQ(place_of(with(with(kOpenMpi, inside), kFolder)).place.rank, 5);
  EXPECT_EQ(place_of(with(with(kMpich, inside), kFolder)).place.rank, 5);
  // Slurm's own PMI: the local rank is Slurm's.
  const EnvList pmi = with(with(kSrun, kFolder), {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}});
  EXPECT_EQ(place_of(pmi).place.launcher, "srun");
}

TEST(LaunchPlace, HalfSetVariablesAreRefusedByName) {
  const std::vector<std::pair<EnvList, std::string>> table = {
      {without(kTorchrun, "WORLD_SIZE"), "WORLD_SIZE is not set"},
      {without(kTorchrun, "RANK"), "RANK is not set"},
      {without(kTorchrun, "LOCAL_RANK"), "LOCAL_RANK is not set"},
      {without(without(kTorchrun, "LOCAL_RANK"), "LOCAL_WORLD_SIZE"),
       "LOCAL_RANK, LOCAL_WORLD_SIZE (1 where each rank has a machine of its own) are not set"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}},
       "LOCAL_RANK, LOCAL_WORLD_SIZE (1 where each rank has a machine of its own), HVDRUN_INIT (or "
       "MASTER_ADDR and MASTER_PORT) are not set"},
      {{{"RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}},
       "WORLD_SIZE, LOCAL_RANK, HVDRUN_INIT (or MASTER_ADDR and MASTER_PORT) are not set"},
      {without(kOpenMpi, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE is not set"},
      {without(kOpenMpi, "OMPI_COMM_WORLD_RANK"), "OMPI_COMM_WORLD_RANK is not set"},
      {without(kMpich, "MPI_LOCALRANKID"), "MPI_LOCALRANKID is not set"},
      {without(kSrun, "SLURM_NTASKS"), "SLURM_STEP_NUM_TASKS is not set"},
      {without(kSrun, "SLURM_LOCALID"), "SLURM_LOCALID is not set"},
      {with(kTorchrun, {{"RANK", "8"}}), "RANK=8 is no rank of WORLD_SIZE=8"},
      {with(kTorchrun, {{"RANK", "-1"}}), "RANK=-1 is no number"},
      {with(kTorchrun, {{"WORLD_SIZE", "0"}}), "no rank of WORLD_SIZE=0"},
      {with(kTorchrun, {{"LOCAL_RANK", "x"}}), "LOCAL_RANK=x is no number"},
      {with(kTorchrun, {{"LOCAL_RANK", "4"}}), "LOCAL_RANK=4 is no rank of LOCAL_WORLD_SIZE=4"},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "is more than WORLD_SIZE=8"},
      {with(kTorchrun, {{"GROUP_RANK", "2"}}), "GROUP_RANK=2 is no rank of GROUP_WORLD_SIZE=2"},
      {with(kMpich, {{"PMI_SIZE", "5"}}), "PMI_RANK=5 is no rank of PMI_SIZE=5"},
  };
  for (const auto& [environment, expected] : table) {
    EXPECT_THAT(refusal_of(environment), HasSubstr(expected));
  }
}

TEST(LaunchPlace, RanksByHandNeedNotTellWhatFollows) {
  const EnvList by_hand = {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"HVDRUN_INIT", "tcp://head:1"}};
  // Each rank on a machine of its own; all on one; and a count that the ranks make together.
  EXPECT_EQ(place_of(with(by_hand, {{"LOCAL_WORLD_SIZE", "1"}})).place.local_rank, 0);
  EXPECT_EQ(place_of(with(by_hand, {{"LOCAL_WORLD_SIZE", "4"}})).place.local_rank, 2);
  const LaunchPlace counted = place_of(with(by_hand, {{"LOCAL_RANK", "1"}}));
  EXPECT_EQ(counted.place.local_rank, 1);
  EXPECT_EQ(counted.place.local_size, 0);
}

TEST(LaunchPlace, KnowsItsJobAndGroup) {
  const LaunchPlace found = place_of(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "abc"}}));
  EXPECT_EQ(found.job, "torchrun run abc, 8 ranks");
  EXPECT_EQ(found.group, "1");
  EXPECT_EQ(place_of(with(kSrun, kFolder)).job, "srun step 77.0, 8 ranks");
}

TEST(LaunchPlace, NowhereToMeetIsRefusedWithTheVariable) {
  EXPECT_THAT(refusal_of(kOpenMpi), AllOf(HasSubstr("of mpirun"), HasSubstr("HVDRUN_INIT")));
  EXPECT_THAT(refusal_of(kSrun), AllOf(HasSubstr("of srun"), HasSubstr("HVDRUN_INIT")));
  EXPECT_THAT(refusal_of(without(kTorchrun, "MASTER_ADDR")), HasSubstr("MASTER_ADDR="));
  EXPECT_THAT(refusal_of(with(kTorchrun, {{"MASTER_PORT", "65535"}})), HasSubstr("HVDRUN_INIT"));
}

TEST(LaunchPlace, ReadsWhereToMeet) {
  const auto at = [](const char* url) { return with(kTorchrun, {{"HVDRUN_INIT", url}}); };
  EXPECT_EQ(place_of(at("tcp://head:1234")).where, "head");
  EXPECT_EQ(place_of(at("tcp://head:1234")).port, 1234);
  EXPECT_EQ(place_of(at("tcp://[fd00::1]:80")).where, "fd00::1");
  EXPECT_EQ(place_of(at("file:///a b")).where, "/a b");
  EXPECT_EQ(place_of(at("")).port, 29501);
  for (const char* url :
       {"file://relative", "file:///", "tcp://head", "tcp://:1", "tcp://head:0", "tcp://head:65536",
        "tcp://head:x", "tcp://::1:80", "http://head:1", "/folder", "tcp:"}) {
    EXPECT_THAT(refusal_of(at(url)), HasSubstr("says nowhere to meet")) << url;
  }
}

TEST(Seats, TwoRanksWithOneLocalRankOnANodeAreRefused) {
  EXPECT_TRUE(check_seats({{"a 1", 0}, {"a 1", 1}, {"b 2", 0}}));
  // Machines of one name, and two agents of torchrun on one machine.
  EXPECT_TRUE(check_seats({{"a 1", 0}, {"a 2", 0}, {"a 1 1", 0}}));
  const auto refused = check_seats({{"a 1", 0}, {"b 2", 1}, {"b 2", 0}, {"b 2", 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("ranks 1 and 3 are both local rank 1 of b: "));
}

TEST(CompletePlace, CountsNodesAndLikeRanks) {
  // Three nodes with 3, 1 and 2 ranks, dealt out in turns.
  const std::vector<Seat> seats = {{"a", 0}, {"b", 0}, {"c", 0}, {"a", 1}, {"c", 1}, {"a", 2}};
  Place place;
  place.size = 6;
  place.local_size = 0;
  place.cross_size = 0;
  const std::vector<std::vector<int>> expected = {
      // local size, cross rank, cross size
      {3, 0, 3}, {1, 1, 3}, {2, 2, 3}, {3, 0, 2}, {2, 1, 2}, {3, 0, 1}};
  for (int rank = 0; rank < 6; ++rank) {
    place.rank = rank;
    place.local_rank = seats[static_cast<std::size_t>(rank)].local_rank;
    const Place full = complete_place(place, seats);
    EXPECT_EQ((std::vector{full.local_size, full.cross_rank, full.cross_size}),
              expected[static_cast<std::size_t>(rank)])
        << rank;
  }
}

TEST(CompletePlace, WhatTheLauncherToldStays) {
  Place place;
  place.size = 2;
  place.local_size = 7;
  place.cross_size = 9;
  EXPECT_EQ(complete_place(place, {{"a", 0}, {"a", 0}}).local_size, 7);
  EXPECT_EQ(complete_place(place, {{"a", 0}, {"a", 0}}).cross_size, 9);
}

}  // namespace
}  // namespace hvd
