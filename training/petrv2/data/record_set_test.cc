#include "training/petrv2/data/record_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "training/formats/tfrecord.h"
#include "training/petrv2/data/inspect_records.h"
#include "training/petrv2/data/record_set_fixture.h"

namespace hvd::petrv2 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kOnlyShard = "train-00000-of-00001";

std::string open_error(const TemporaryFolder& folder, const std::string& split = "train") {
  const auto set = RecordSet::open(folder.path(), split);
  return set ? "" : set.error().message;
}

TEST(RecordSet, ListsSamplesInOrderOfTime) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 3, 2, 2);
  const auto set = RecordSet::open(folder.path(), "train");
  ASSERT_TRUE(set) << set.error().message;
  std::vector<std::string> tokens;
  std::vector<std::uint32_t> num_boxes;
  for (const SampleEntry& entry : set->samples()) {
    tokens.push_back(entry.token);
    num_boxes.push_back(entry.num_boxes);
  }
  EXPECT_THAT(tokens, ElementsAre("a-0", "a-2", "b-100", "b-102", "c-200", "c-202"));
  EXPECT_THAT(num_boxes, ElementsAre(1, 3, 2, 1, 3, 2));
}

TEST(RecordSet, EqualTimesAreOrderedByToken) {
  const TemporaryFolder folder;
  auto writer = RecordSetWriter::create(folder.path(), "val", 1);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add_step(fixture_step("z", 4)));
  ASSERT_TRUE(writer->add_sample(fixture_sample("z", 4, 0, 0)));
  ASSERT_TRUE(writer->add_step(fixture_step("a", 4)));
  ASSERT_TRUE(writer->add_sample(fixture_sample("a", 4, 2, 0)));
  ASSERT_TRUE(writer->close());
  const auto set = RecordSet::open(folder.path(), "val");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->samples()[0].token, "a-4");
}

TEST(RecordSet, ASceneStaysInOneShardAndShardsAreOfLikeSize) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 4, 2, 2);
  const auto set = RecordSet::open(folder.path(), "train");
  ASSERT_TRUE(set);
  std::vector<std::size_t> shards;
  for (const SampleEntry& entry : set->samples()) shards.push_back(entry.shard);
  EXPECT_EQ(shards[0], shards[1]);
  EXPECT_EQ(std::count(shards.begin(), shards.end(), 0U), 4);
  for (std::size_t i = 0; i < set->samples().size(); ++i) {
    const auto sample = set->read_sample(i);
    ASSERT_TRUE(sample);
    const auto step = set->read_step(shards[i], sample->cur_step);
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_EQ(step->scene, sample->scene);
    EXPECT_EQ(step->timestamp_us[0], sample->timestamp_us);
  }
}

TEST(RecordSet, MoreShardsThanScenesLeavesEmptyOnes) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 1, 2, 3);
  const auto set = RecordSet::open(folder.path(), "train");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->shards().size(), 3U);
  EXPECT_EQ(set->samples().size(), 2U);
}

TEST(RecordSet, EqualSetsAreEqualFiles) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  write_fixture_set(first.path(), 1, 2, 1);
  write_fixture_set(second.path(), 1, 2, 1);
  const std::string file = std::string(kOnlyShard) + ".tfrecord";
  EXPECT_EQ(read_bytes(first.file(file)), read_bytes(second.file(file)));
}

TEST(RecordSet, NamesAMissingShardOrSplit) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 2, 1, 2);
  EXPECT_THAT(open_error(folder, "val"), HasSubstr("splits there: train"));
  std::filesystem::remove(folder.file("train-00001-of-00002.tfrecord"));
  EXPECT_THAT(open_error(folder), HasSubstr("train-00001-of-00002.tfrecord is missing"));
  EXPECT_THAT(RecordSet::open(folder.file("nowhere"), "train").error().message,
              AllOf(HasSubstr("nowhere"), HasSubstr("No such file")));
}

TEST(RecordSet, RefusesTwoSetsOfOneName) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 1, 1, 1);
  EXPECT_THAT(RecordSetWriter::create(folder.path(), "train", 2).error().message,
              HasSubstr("already holds shards of \"train\""));
  write_bytes(folder.file("train-00000-of-00003.tfrecord"), "");
  EXPECT_THAT(open_error(folder), HasSubstr("two sets \"train\""));
}

TEST(RecordSet, ASetWithoutIndexWasNotFinished) {
  const TemporaryFolder folder;
  {
    auto writer = RecordSetWriter::create(folder.path(), "train", 1);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add_step(fixture_step("a", 0)));
  }
  EXPECT_THAT(open_error(folder), HasSubstr(std::string(kOnlyShard) + ".index"));
}

// Cut anywhere, also between two records where the file alone looks complete.
TEST(RecordSet, FindsACutFileWhenItOpens) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 1, 2, 1);
  const std::string path = folder.file(std::string(kOnlyShard) + ".tfrecord");
  const std::string whole = read_bytes(path);
  const auto set = RecordSet::open(folder.path(), "train");
  ASSERT_TRUE(set);
  const std::size_t second = set->shards()[0].index[1].offset;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{12},
                                 second, second + 1, whole.size() - 1}) {
    write_bytes(path, whole.substr(0, size));
    EXPECT_THAT(open_error(folder), HasSubstr(path)) << size;
  }
}

TEST(RecordSet, NamesADamagedSampleWhenItOpens) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 1, 2, 1);
  const std::string path = folder.file(std::string(kOnlyShard) + ".tfrecord");
  const std::string whole = read_bytes(path);
  const auto set = RecordSet::open(folder.path(), "train");
  ASSERT_TRUE(set);
  const TfrecordIndexEntry entry = set->shards()[0].index[5];  // 4 steps, then 2 samples
  for (const std::uint64_t byte :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{400}, entry.size - 1}) {
    std::string damaged = whole;
    damaged[entry.offset + byte] = static_cast<char>(damaged[entry.offset + byte] ^ 0x04);
    write_bytes(path, damaged);
    EXPECT_THAT(open_error(folder), AllOf(HasSubstr(path), HasSubstr("record 5"),
                                          HasSubstr(std::to_string(entry.offset))))
        << byte;
  }
}

TEST(RecordSet, NamesADamagedStepWhenItIsRead) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 1, 2, 1);
  const std::string path = folder.file(std::string(kOnlyShard) + ".tfrecord");
  std::string damaged = read_bytes(path);
  damaged[3000] = static_cast<char>(damaged[3000] ^ 0x01);  // in an image of step 0
  write_bytes(path, damaged);
  const auto set = RecordSet::open(folder.path(), "train");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_THAT(set->read_step(0, 0).error().message,
              AllOf(HasSubstr(path), HasSubstr("record 0"), HasSubstr("offset 0")));
  EXPECT_TRUE(set->read_step(0, 1));
  EXPECT_THAT(set->read_step(0, 4).error().message, HasSubstr("record 4 at offset"));
  EXPECT_THAT(set->read_step(0, 77).error().message, HasSubstr("names record 77"));
}

TEST(RecordSet, FilesOfAnotherKindAreRefused) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 1, 1, 1);
  const std::string path = folder.file(std::string(kOnlyShard) + ".tfrecord");
  const std::string index = folder.file(std::string(kOnlyShard) + ".index");
  for (const std::string& content :
       {std::string("\x1f\x8b\x08 gzip, it seems, of some length"),
        std::string("<!DOCTYPE html><html><body>404 Not Found</body></html>"),
        std::string("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n")}) {
    write_bytes(path, content);
    write_bytes(index, "0 " + std::to_string(content.size()) + "\n");
    EXPECT_THAT(open_error(folder), AllOf(HasSubstr(path), HasSubstr("record 0")));
  }
}

TEST(InspectRecords, ToldInOneObject) {
  const TemporaryFolder folder;
  write_fixture_set(folder.path(), 2, 2, 1);
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect_records(folder.path(), true), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("\"samples\": 4"), HasSubstr("\"steps\": 8"), HasSubstr("\"car\": 4"),
                    HasSubstr("\"truck\": 2"), HasSubstr("\"trained_on\": 7"),
                    HasSubstr("\"sample_token\": \"a-0\"")));
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect_records(folder.path(), false), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("train: 4 samples, 8 steps in 1 shard\n"));
}

TEST(InspectRecords, AFolderWithoutRecordsIsAnError) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_inspect_records(folder.path(), false), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(folder.path()));
}

}  // namespace
}  // namespace hvd::petrv2
