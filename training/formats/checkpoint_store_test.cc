#include "training/formats/checkpoint_store.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>

#include "training/formats/atomic_file.h"
#include "training/formats/test_files.h"

namespace hvd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The names in a folder, sorted, without the lock.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() != ".lock") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// A checkpoint whose every byte tells its step.
Result<SavedCheckpoint> save_step(CheckpointStore& store, std::uint64_t step,
                                  std::size_t num_bytes = 1000) {
  const std::string bytes(num_bytes, static_cast<char>(step));
  return store.save(step, {{{"w", "U8", {num_bytes}}, bytes}}, {{"step", std::to_string(step)}});
}

void expect_is_whole(const Checkpoint& checkpoint) {
  EXPECT_EQ(checkpoint.file.metadata().at("step"), std::to_string(checkpoint.step));
  const std::string_view bytes = checkpoint.file.bytes("w").value();
  EXPECT_EQ(bytes.find_first_not_of(static_cast<char>(checkpoint.step)), std::string_view::npos);
}

std::uint64_t newest_step(const std::string& folder) {
  const auto newest = newest_checkpoint(folder);
  EXPECT_TRUE(newest) << newest.error().message;
  EXPECT_TRUE(newest->checkpoint);
  expect_is_whole(*newest->checkpoint);
  return newest->checkpoint->step;
}

// Runs it in a child process; its exit status.
int in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(CheckpointName, ThereAndBackOnlyForOurOwnNames) {
  EXPECT_EQ(checkpoint_name(1234), "step-00001234.safetensors");
  EXPECT_EQ(checkpoint_step("step-00001234.safetensors"), 1234U);
  EXPECT_EQ(checkpoint_step(checkpoint_name(123456789012)), 123456789012U);
  for (const char* name :
       {"step-1234.safetensors", "step-000001234.safetensors", "step-00001234.safetensors.old",
        "step-.safetensors", "step--0000001.safetensors", "best.safetensors", "",
        ".step-00001234.safetensors.partial-7", "step-99999999999999999999.safetensors"}) {
    EXPECT_EQ(checkpoint_step(name), std::nullopt) << name;
  }
}

TEST(StepsToDelete, NeverTheOneJustSaved) {
  EXPECT_THAT(steps_to_delete({10, 30, 20}, 30, 2), ElementsAre(10));
  EXPECT_THAT(steps_to_delete({10, 30, 20}, 30, 1), ElementsAre(10, 20));
  EXPECT_THAT(steps_to_delete({10, 30, 20}, 30, 3), IsEmpty());
  EXPECT_THAT(steps_to_delete({30}, 30, 5), IsEmpty());
  // Saved again below others that are there: after an earlier step was resumed by hand.
  EXPECT_THAT(steps_to_delete({5, 10, 20, 30}, 5, 2), ElementsAre(10, 20));
}

TEST(CheckpointStore, KeepsTheLastOnesAndFindsTheNewest) {
  const TestFolder folder;
  auto store = CheckpointStore::open(folder / "new/run", 2);
  ASSERT_TRUE(store) << store.error().message;
  for (const std::uint64_t step : {1, 2, 3, 4}) {
    const auto saved = save_step(*store, step);
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(saved->num_bytes, std::filesystem::file_size(saved->path));
    EXPECT_THAT(saved->notes, IsEmpty());
  }
  EXPECT_THAT(names_in(folder / "new/run"),
              ElementsAre("step-00000003.safetensors", "step-00000004.safetensors"));
  EXPECT_EQ(newest_step(folder / "new/run"), 4U);
  EXPECT_FALSE(CheckpointStore::open(folder / "none", 0));
}

TEST(CheckpointStore, NothingThereIsNoErrorAndNoCheckpoint) {
  const TestFolder folder;
  EXPECT_FALSE(newest_checkpoint(folder.path()).value().checkpoint);
  EXPECT_FALSE(newest_checkpoint(folder / "none").value().checkpoint);
}

TEST(CheckpointStore, AHeldCheckpointStaysReadableWhenItIsDeleted) {
  const TestFolder folder;
  auto store = CheckpointStore::open(folder.path(), 1);
  ASSERT_TRUE(save_step(*store, 1));
  const auto newest = newest_checkpoint(folder.path());
  ASSERT_TRUE(save_step(*store, 2));
  EXPECT_THAT(names_in(folder.path()), SizeIs(1));
  expect_is_whole(*newest->checkpoint);
}

TEST(CheckpointStore, ASecondWriterIsRefusedAndTheFirstNamed) {
  const TestFolder folder;
  auto first = CheckpointStore::open(folder.path(), 1);
  const auto second = CheckpointStore::open(folder.path(), 1);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr(folder.path()), HasSubstr(fmt::format("process {} on ", getpid()))));
  first = make_error("gone");
  EXPECT_TRUE(CheckpointStore::open(folder.path(), 1));
}

TEST(CheckpointStore, DamagedOnesArePassedOverWithOneLineEach) {
  const TestFolder folder;
  auto store = CheckpointStore::open(folder.path(), 9);
  for (const std::uint64_t step : {1, 2, 3}) ASSERT_TRUE(save_step(*store, step));
  const std::string whole = read_file(checkpoint_path(folder.path(), 3));
  write_file(checkpoint_path(folder.path(), 3), whole.substr(0, whole.size() - 1));
  write_file(checkpoint_path(folder.path(), 2), "");
  const auto newest = newest_checkpoint(folder.path());
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->checkpoint->step, 1U);
  EXPECT_THAT(newest->notes, ElementsAre(HasSubstr("step-00000003.safetensors"),
                                         HasSubstr("step-00000002.safetensors: it has 0 bytes")));
  write_file(checkpoint_path(folder.path(), 1), "x");
  EXPECT_THAT(newest_checkpoint(folder.path()).error().message,
              AllOf(HasSubstr("none of the 3 checkpoints"), HasSubstr("step-00000003")));
}

TEST(CheckpointStore, SweepsOnlyTemporaryFilesOfItsOwnNaming) {
  const TestFolder folder;
  const std::vector<std::string> others = {
      ".other.safetensors.partial-12",          ".step-00000001.safetensors.partial-",
      ".step-00000001.safetensors.partial-12x", ".step-1.safetensors.partial-12",
      "step-00000001.safetensors.partial-12",   "notes.txt"};
  for (const std::string& name : others) write_file(folder / name, "x");
  write_file(folder / ".step-00000001.safetensors.partial-12", "x");
  write_file(folder / ".step-00000009.safetensors.partial-4194304", "x");
  ASSERT_TRUE(CheckpointStore::open(folder.path(), 1));
  EXPECT_THAT(names_in(folder.path()), testing::UnorderedElementsAreArray(others));
}

// Saves one step after the other until it is killed.
[[noreturn]] void save_for_ever(const std::string& folder, std::uint64_t step,
                                std::size_t num_bytes) {
  auto store = CheckpointStore::open(folder, 2);
  while (store && save_step(*store, step, num_bytes)) ++step;
  _exit(1);
}

// Waits until the child's temporary file has grown to `size` bytes; false if the child has ended.
bool wait_for_partial(const std::string& folder, pid_t child, std::uint64_t size) {
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    for (const std::string& name : names_in(folder)) {
      struct stat status {};
      const bool is_there = ::stat((folder + "/" + name).c_str(), &status) == 0;
      if (name.starts_with(".") && is_there && static_cast<std::uint64_t>(status.st_size) >= size) {
        return true;
      }
    }
  }
  return false;
}

TEST(CheckpointStore, AWriterKilledAtAnyMomentLeavesACompleteNewestOne) {
  const TestFolder folder;
  constexpr std::size_t kBytes = 8 << 20;
  {
    auto store = CheckpointStore::open(folder.path(), 2);
    ASSERT_TRUE(save_step(*store, 1, kBytes));
  }
  std::mt19937 random(16);
  std::uint64_t newest = 1;
  int num_left_over = 0;
  const int num_kills = std::getenv("HVDRUN_LONG") == nullptr ? 10 : 200;
  for (int i = 0; i < num_kills; ++i) {
    const pid_t child = fork();
    if (child == 0) save_for_ever(folder.path(), newest + 1, kBytes);
    EXPECT_TRUE(wait_for_partial(folder.path(), child, random() % kBytes));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    const std::uint64_t found = newest_step(folder.path());
    EXPECT_GE(found, newest);
    newest = found;
    const auto names = names_in(folder.path());
    const auto left = std::ranges::count_if(names, [](auto& name) { return name[0] == '.'; });
    EXPECT_LE(left, 1);
    num_left_over += static_cast<int>(left);
  }
  EXPECT_GT(num_left_over, 0) << "no kill came in the middle of a save";
  ASSERT_TRUE(CheckpointStore::open(folder.path(), 2));
  for (const std::string& name : names_in(folder.path())) EXPECT_NE(name[0], '.');
}

// The store's folder holds step 1 and no room for step 2.
void expect_full_disk_is_told(const std::string& folder, const std::string& reason) {
  auto store = CheckpointStore::open(folder, 1);
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(save_step(*store, 1, 300'000));
  for (int again = 0; again < 2; ++again) {
    const auto saved = save_step(*store, 2, 900'000);
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().message,
                AllOf(HasSubstr("cannot write " + checkpoint_path(folder, 2)), HasSubstr(reason),
                      HasSubstr("900"), HasSubstr("bytes needed, ")));
    EXPECT_THAT(names_in(folder), ElementsAre(checkpoint_name(1)));
    EXPECT_EQ(newest_step(folder), 1U);
  }
  EXPECT_TRUE(save_step(*store, 3, 300'000));
}

TEST(CheckpointStore, ALimitOnFileSizesKeepsThePreviousOne) {
  const TestFolder folder;
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{500'000, 500'000};
              ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
              expect_full_disk_is_told(folder.path(), "File too large");
            }),
            0);
}

TEST(AtomicFile, AWriteThatFailsInTheMiddleRemovesItsTemporaryFile) {
  const TestFolder folder;
  write_file(folder / "a", "before");
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{500'000, 500'000};
              ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
              auto file = AtomicFile::create(folder / "a", 0);
              const std::string piece(300'000, 'x');
              ASSERT_TRUE(file->write(piece));
              EXPECT_THAT(file->write(piece).error().message,
                          AllOf(HasSubstr("cannot write " + (folder / "a") + ": File too large"),
                                HasSubstr("(600000 bytes needed, ")));
              EXPECT_FALSE(file->write(""));
              EXPECT_FALSE(file->commit());
            }),
            0);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
  EXPECT_EQ(read_file(folder / "a"), "before");
}

// A file system of one MiB in a mount namespace of this process alone; whether it could be made.
bool mount_small_disk(const std::string& folder) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

TEST(CheckpointStore, AFullDiskKeepsThePreviousOne) {
  constexpr int kCannotMount = 77;
  const TestFolder folder;
  const int status = in_child([&] {
    if (!mount_small_disk(folder.path())) _exit(kCannotMount);
    expect_full_disk_is_told(folder.path(), "No space left on device");
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotMount) {
    GTEST_SKIP() << "a small file system of its own needs the right to mount";
  }
  EXPECT_EQ(status, 0);
}

TEST(CheckpointStore, AFolderThatMayNotBeWrittenIsOneSentence) {
  const TestFolder folder;
  const std::string read_only = folder / "read_only";
  std::filesystem::create_directory(read_only);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(read_only.c_str(), 0555), 0);
  EXPECT_EQ(in_child([&] {
              constexpr uid_t kNobody = 65534;
              ASSERT_EQ(getuid() == 0 ? setuid(kNobody) : 0, 0);
              const auto store = CheckpointStore::open(read_only, 1);
              ASSERT_FALSE(store);
              EXPECT_THAT(store.error().message,
                          AllOf(HasSubstr(read_only), HasSubstr("Permission denied"),
                                HasSubstr("that you may write to")));
            }),
            0);
}

TEST(AtomicFile, WithoutCommitNothingHasHappened) {
  const TestFolder folder;
  write_file(folder / "a", "before");
  {
    auto file = AtomicFile::create(folder / "a", 5);
    ASSERT_TRUE(file->write("after"));
    EXPECT_THAT(names_in(folder.path()), SizeIs(2));
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
  EXPECT_EQ(read_file(folder / "a"), "before");
  auto file = AtomicFile::create(folder / "a", 0);
  ASSERT_TRUE(file->write("after"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_file(folder / "a"), "after");
  EXPECT_FALSE(file->commit());
  EXPECT_EQ(read_file(folder / "a"), "after");
}

}  // namespace
}  // namespace hvd
