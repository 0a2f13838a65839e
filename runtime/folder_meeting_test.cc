#include "runtime/folder_meeting.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/tcp_rendezvous.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string kJob = "torchrun run a, 2 ranks";

class FolderMeetingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "meetXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // What each of the ranks gets when all come together.
  std::vector<Result<std::string>> meet(int size, milliseconds timeout = milliseconds(20000)) {
    std::vector<Result<std::string>> found(static_cast<std::size_t>(size));
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        found[static_cast<std::size_t>(rank)] = meet_in_folder(folder_, kJob, rank, size, timeout);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return found;
  }
  std::string run_of(int size) {
    const auto found = meet(size);
    for (const auto& each : found) {
      EXPECT_TRUE(each) << each.error().message;
      EXPECT_EQ(each.value_or(""), found[0].value_or(""));
    }
    return found[0].value_or("");
  }

  std::string folder_;
};

TEST_F(FolderMeetingTest, AllRanksFindTheSameNewFolder) {
  const std::string run = run_of(4);
  EXPECT_TRUE(fs::is_directory(run));
  EXPECT_EQ(fs::path(run).parent_path(), folder_);
  EXPECT_EQ(fs::status(run).permissions(), fs::perms::owner_all);
}

TEST_F(FolderMeetingTest, WhatAnEarlierRunLeftIsIgnored) {
  const std::string first = run_of(3);
  ASSERT_TRUE(FolderRendezvous(first).put("key", "of the first", {}));
  const std::string second = run_of(3);
  EXPECT_NE(first, second);
  EXPECT_FALSE(FolderRendezvous(second).get("key", milliseconds(0)));
}

TEST_F(FolderMeetingTest, ARankThatComesBackAfterRankZeroReadItsOldTokenIsInvitedAgain) {
  run_of(2);
  // Rank 0 begins among the first run's files, well before rank 1 writes its new token.
  Result<std::string> of_zero;
  std::thread zero([&] { of_zero = meet_in_folder(folder_, kJob, 0, 2, milliseconds(20000)); });
  std::this_thread::sleep_for(milliseconds(150));
  const auto of_one = meet_in_folder(folder_, kJob, 1, 2, milliseconds(20000));
  zero.join();
  ASSERT_TRUE(of_zero) << of_zero.error().message;
  EXPECT_EQ(*of_zero, of_one.value_or(""));
}

TEST_F(FolderMeetingTest, StaleFilesAloneAreNoPartners) {
  run_of(2);
  const auto alone = meet_in_folder(folder_, kJob, 1, 2, milliseconds(100));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, ExitCode::kTimeout);
  EXPECT_THAT(alone.error().message, HasSubstr("rank 0 of 2 ranks did not come"));
}

TEST_F(FolderMeetingTest, MissingRanksAreNamed) {
  const auto alone = meet_in_folder(folder_, kJob, 0, 3, milliseconds(100));
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message, HasSubstr("1 of 3 ranks came within 100 ms, missing: 1, 2"));
}

TEST_F(FolderMeetingTest, AFolderThatIsNotThereIsTheUsersError) {
  const auto none = meet_in_folder(folder_ + "/none", kJob, 0, 2, milliseconds(100));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::kUsage);
}

TEST_F(FolderMeetingTest, AFolderThatTakesNoFilesIsTheUsersErrorAtOnce) {
  const auto none = meet_in_folder("/proc", kJob, 0, 2, milliseconds(20000));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::kUsage);
  EXPECT_THAT(none.error().message,
              HasSubstr("HVDRUN_INIT=file:///proc: rank 0 cannot make a file there"));
}

TEST_F(FolderMeetingTest, TwoJobsInOneFolderDoNotSeeEachOther) {
  std::vector<Result<std::string>> found(4);
  std::vector<std::thread> ranks;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ranks.emplace_back([&, i] {
      found[i] = meet_in_folder(folder_, i < 2 ? "job a" : "job b", static_cast<int>(i % 2), 2,
                                milliseconds(20000));
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& each : found) ASSERT_TRUE(each) << each.error().message;
  EXPECT_EQ(*found[0], *found[1]);
  EXPECT_EQ(*found[2], *found[3]);
  EXPECT_NE(*found[0], *found[2]);
  leave_folder(folder_, "job a", *found[0], 2);
  EXPECT_TRUE(fs::is_directory(*found[2]));
  leave_folder(folder_, "job b", *found[2], 2);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FolderMeetingTest, LeavingRemovesTheRunAndNothingElse) {
  std::ofstream(folder_ + "/of_the_user") << "kept";
  const std::string run = run_of(2);
  leave_folder(folder_, kJob, run, 2);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::ElementsAre("of_the_user"));
}

}  // namespace
}  // namespace hvd
