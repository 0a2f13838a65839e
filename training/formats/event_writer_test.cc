#include "training/formats/event_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/formats/test_files.h"
#include "training/formats/tfrecord.h"

namespace hvd {
namespace {

using testing::HasSubstr;

// How many records can be read from the file now.
std::size_t num_records(const std::string& path) {
  auto reader = TfrecordReader::open(path);
  std::size_t count = 0;
  while (reader->next().value()) ++count;
  return count;
}

TEST(EventWriter, VersionEventGoldenBytes) {
  // wall_time = 1.5, file_version = "brain.Event:2"
  EXPECT_EQ(encode_version_event(1.5),
            from_hex("09 00 00 00 00 00 00 f8 3f 1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32"));
}

TEST(EventWriter, ScalarEventGoldenBytes) {
  // wall_time = 1.5, step = 300, summary {value {tag "a", 0.5}, value {tag "b", 0}}: a value of 0
  // is present.
  EXPECT_EQ(encode_scalar_event(1.5, 300, {{"a", 0.5}, {"b", 0}}),
            from_hex("09 00 00 00 00 00 00 f8 3f 10 ac 02 2a 14 0a 08 0a 01 61 15 00 00 00 3f "
                     "0a 08 0a 01 62 15 00 00 00 00"));
}

TEST(EventWriter, TheFileIsNamedByTimeAndHostAndStartsWithItsVersion) {
  const TestFolder folder;
  auto writer = EventWriter::create(folder / "logs/run", 1700000000.25, "node7");
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->path(), folder / "logs/run/events.out.tfevents.1700000000.node7");
  const std::string file = read_file(writer->path());
  // The frame that every TensorBoard file starts with.
  EXPECT_EQ(file.substr(0, 12), from_hex("18 00 00 00 00 00 00 00 a3 7f 4b 22"));
  EXPECT_EQ(file.substr(12, 24), encode_version_event(1700000000.25));
}

TEST(EventWriter, AnExistingFileIsNotOverwritten) {
  const TestFolder folder;
  const auto first = EventWriter::create(folder.path(), 17, "h");
  const auto second = EventWriter::create(folder.path(), 17, "h");
  EXPECT_THAT(first->path(), HasSubstr(".0000000017.h"));
  EXPECT_THAT(second->path(), HasSubstr(".0000000018.h"));
}

TEST(EventWriter, HandsOverEachSecondAndAtTheEnd) {
  const TestFolder folder;
  auto writer = EventWriter::create(folder.path(), 100, "h");
  ASSERT_TRUE(writer->add_scalars(100.5, 1, {{"a", 1}}));
  ASSERT_TRUE(writer->add_scalars(100.9, 2, {{"a", 2}}));
  EXPECT_EQ(num_records(writer->path()), 1U);
  ASSERT_TRUE(writer->add_scalars(101.0, 3, {{"a", 3}}));
  EXPECT_EQ(num_records(writer->path()), 4U);
  ASSERT_TRUE(writer->add_scalars(101.9, 4, {{"a", 4}}));
  EXPECT_EQ(num_records(writer->path()), 4U);
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(num_records(writer->path()), 5U);
}

TEST(EventWriter, AFolderThatCannotBeMadeIsOneSentence) {
  const TestFolder folder;
  write_file(folder / "file", "");
  EXPECT_THAT(EventWriter::create(folder / "file/logs", 1, "h").error().message,
              HasSubstr("cannot make the folder"));
}

}  // namespace
}  // namespace hvd
