#include "runtime/worker_rendezvous.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "runtime/rank_connect.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kAmpleWait{20'000};
constexpr int kRanks = 3;

// Ranks as threads, each with its own way through a folder.
class FolderRanksTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ranksXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  LaunchPlace launch_of(int rank) const {
    LaunchPlace launch;
    launch.place.rank = rank;
    launch.place.size = kRanks;
    launch.place.local_rank = rank;
    launch.place.local_size = 0;  // as under mpirun and srun
    launch.place.cross_size = 0;
    launch.place.host = "here";
    launch.way = MeetingWay::kFolder;
    launch.where = folder_;
    launch.address = "127.0.0.1";
    return launch;
  }

  // body(rank, its rendezvous)
  template <typename Body>
  void on_ranks(Body body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        auto opened = open_rendezvous(launch_of(rank), kAmpleWait);
        ASSERT_TRUE(opened) << opened.error().message;
        body(rank, **opened);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static hvdrun::v1::Registration registration_of(int rank, const std::string& plan) {
    hvdrun::v1::Registration registration;
    registration.set_rank(static_cast<std::uint32_t>(rank));
    registration.set_size(kRanks);
    registration.set_host("here");
    registration.set_pid(1000 + rank);
    registration.set_plan(plan);
    registration.set_plan_hash(plan.size());
    return registration;
  }

  std::string folder_;
};

TEST_F(FolderRanksTest, RegisterConnectAndCountTheirPlaces) {
  std::vector<float> sums(kRanks);
  std::vector<Place> places(kRanks);
  on_ranks([&](int rank, WorkerRendezvous& rendezvous) {
    const auto registered = rendezvous.register_worker(registration_of(rank, "plan"), kAmpleWait);
    ASSERT_TRUE(registered) << registered.error().message;
    const LaunchPlace launch = launch_of(rank);
    auto connected = connect_ranks(rendezvous, launch, kAmpleWait);
    ASSERT_TRUE(connected) << connected.error().message;
    float& sum = sums[static_cast<std::size_t>(rank)];
    sum = static_cast<float>(rank + 1);
    ASSERT_TRUE((*connected)->all_reduce(&sum, 1, DataType::kFloat32, {}, {}));
    const auto place = gather_place(**connected, launch, kAmpleWait);
    ASSERT_TRUE(place);
    places[static_cast<std::size_t>(rank)] = *place;
    ASSERT_TRUE((*connected)->finalize({}));
    rendezvous.clean_up();
  });
  EXPECT_EQ(sums, std::vector<float>(kRanks, 6));
  for (int rank = 0; rank < kRanks; ++rank) {
    const Place& place = places[static_cast<std::size_t>(rank)];
    EXPECT_EQ(place.rank, rank);
    EXPECT_EQ(place.local_size, kRanks);
    EXPECT_EQ(place.cross_rank, 0);
    EXPECT_EQ(place.cross_size, 1);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FolderRanksTest, AnotherPlanIsRefusedOnAllRanks) {
  std::vector<std::string> reasons(kRanks);
  on_ranks([&](int rank, WorkerRendezvous& rendezvous) {
    const auto registered = rendezvous.register_worker(
        registration_of(rank, rank == 1 ? "another plan" : "plan"), kAmpleWait);
    ASSERT_FALSE(registered);
    EXPECT_EQ(registered.error().code, static_cast<ExitCode>(WorkerExit::kMismatch));
    reasons[static_cast<std::size_t>(rank)] = registered.error().message;
  });
  EXPECT_NE(reasons[0], "");
  EXPECT_EQ(reasons[0], reasons[1]);
  EXPECT_EQ(reasons[0], reasons[2]);
}

LaunchPlace tcp_launch(const std::string& host, int rank) {
  LaunchPlace launch;
  launch.place.rank = rank;
  launch.place.size = 2;
  launch.way = MeetingWay::kTcp;
  launch.where = host;
  launch.port = 29500;
  return launch;
}

TEST(TcpMeeting, APlaceThatCannotBeOneIsRefusedAtOnce) {
  for (const int rank : {0, 1}) {
    const auto opened = open_rendezvous(tcp_launch("no such host", rank), kAmpleWait);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ExitCode::kUsage);
    EXPECT_THAT(opened.error().message, HasSubstr("host 'no such host' cannot be found"));
  }
}

// Rank 0 asks it for its own token, and in vain.
TEST(TcpMeeting, AnAddressThatIsNotRankZerosIsRefused) {
  LaunchPlace launch = tcp_launch("192.0.2.7", 0);
  launch.port = 0;
  const auto opened = open_rendezvous(launch, milliseconds(500));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ExitCode::kUsage);
  EXPECT_THAT(opened.error().message, HasSubstr("tcp://192.0.2.7:0 does not lead to it"));
}

TEST(OwnAddress, OfAnotherMachineIsRefusedWhateverTheWay) {
  for (const MeetingWay way : {MeetingWay::kAgent, MeetingWay::kFolder, MeetingWay::kTcp}) {
    LaunchPlace launch = tcp_launch("127.0.0.1", 1);
    launch.way = way;
    launch.address = "192.0.2.7";
    const auto opened = open_rendezvous(launch, kAmpleWait);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ExitCode::kUsage);
    EXPECT_THAT(opened.error().message, HasSubstr("HVDRUN_ADDRESS=192.0.2.7"));
  }
}

TEST(AloneRendezvous, NeedsNobody) {
  auto opened = open_rendezvous({}, milliseconds(0));
  ASSERT_TRUE(opened);
  EXPECT_TRUE((*opened)->register_worker({}, milliseconds(0)));
  ASSERT_TRUE((*opened)->put("key", "value", milliseconds(0)));
  EXPECT_EQ((*opened)->get("key", milliseconds(0)), "value");
  auto connected = connect_ranks(**opened, {}, milliseconds(0));
  ASSERT_TRUE(connected);
  EXPECT_EQ((*connected)->size(), 1);
}

}  // namespace
}  // namespace hvd
