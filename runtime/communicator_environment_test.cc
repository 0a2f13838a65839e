#include "runtime/communicator_environment.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::HasSubstr;

TEST(WorkerPlace, OneProcessIsAlone) {
  EXPECT_TRUE(worker_place({{"HOME", "/root"}})->is_alone);
  EXPECT_TRUE(worker_place({{"RANK", "0"}, {"WORLD_SIZE", "1"}})->is_alone);
}

TEST(WorkerPlace, ReadsWhatHvdrunGives) {
  EnvList environment = rank_env({3, 4, 1, 2, 1, 2, 1, 2, "node2"});
  for (auto& variable : node_env("job", 1, "10.0.0.1", 61000, "10.0.0.2")) {
    environment.push_back(variable);
  }
  environment.emplace_back("HVDRUN_RENDEZVOUS", "/run/job/rendezvous.sock");
  const auto place = worker_place(environment);
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_FALSE(place->is_alone);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->address, "10.0.0.2");
  EXPECT_EQ(place->host, "node2");
  EXPECT_EQ(place->rendezvous, "/run/job/rendezvous.sock");
}

TEST(WorkerPlace, WithoutAFabricAddressItIsLoopback) {
  const auto place = worker_place(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"HVDRUN_RENDEZVOUS", "/s"}, {"HVDRUN_ADDRESS", ""}});
  EXPECT_EQ(place->address, "127.0.0.1");
}

TEST(WorkerPlace, RanksOfAnotherLauncherAreRefusedWithTheRemedy) {
  const auto place = worker_place(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}});
  ASSERT_FALSE(place);
  EXPECT_THAT(place.error().message, HasSubstr("hvdrun -np 2 PROGRAM"));
}

TEST(WorkerPlace, BrokenNumbersAreRefused) {
  for (const auto& [rank, size] : {std::pair{"2", "2"}, {"-1", "2"}, {"x", "2"}, {"0", ""}}) {
    EXPECT_FALSE(worker_place({{"RANK", rank}, {"WORLD_SIZE", size}})) << rank << " of " << size;
  }
  EXPECT_FALSE(worker_place({{"RANK", "0"}}));
}

}  // namespace
}  // namespace hvd
