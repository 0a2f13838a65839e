#include "training/formats/tfrecord_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/formats/test_files.h"
#include "training/formats/tfrecord.h"

namespace hvd {
namespace {

using testing::HasSubstr;

const TfrecordIndex kIndex = {{0, 19}, {19, 16}, {35, 26}};

// Records of 3, 0 and 10 bytes.
void write_records(const std::string& path) {
  auto writer = TfrecordWriter::create(path);
  ASSERT_TRUE(writer);
  for (const char* payload : {"foo", "", "0123456789"}) ASSERT_TRUE(writer->append(payload));
  ASSERT_TRUE(writer->close());
}

std::string check(const TfrecordIndex& index, const std::string& path) {
  const auto reader = TfrecordReader::open(path);
  const auto checked = check_tfrecord_index(index, *reader);
  return checked ? "" : checked.error().message;
}

TEST(TfrecordIndex, PathStandsBesideTheRecords) {
  EXPECT_EQ(tfrecord_index_path("/d/a-00000-of-00004.tfrecord"), "/d/a-00000-of-00004.index");
  EXPECT_EQ(tfrecord_index_path("/d.tfrecord/a"), "/d.tfrecord/a.index");
}

TEST(TfrecordIndex, BuiltFromRecordsWrittenAndReadBack) {
  const TestFolder folder;
  write_records(folder / "a.tfrecord");
  const auto built = build_tfrecord_index(folder / "a.tfrecord");
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(*built, kIndex);
  ASSERT_TRUE(write_tfrecord_index(folder / "a.index", *built));
  EXPECT_EQ(read_file(folder / "a.index"), "0 19\n19 16\n35 26\n");
  EXPECT_EQ(read_tfrecord_index(folder / "a.index").value(), kIndex);
  EXPECT_EQ(check(kIndex, folder / "a.tfrecord"), "");
}

TEST(TfrecordIndex, ReadsWhatOtherToolsWrite) {
  const TestFolder folder;
  write_file(folder / "i", "0 19\r\n19 16\r\n35 26");
  EXPECT_EQ(read_tfrecord_index(folder / "i").value(), kIndex);
  write_file(folder / "i", "");
  EXPECT_TRUE(read_tfrecord_index(folder / "i").value().empty());
}

TEST(TfrecordIndex, BadLinesAreToldByNumber) {
  const TestFolder folder;
  for (const char* line : {"", "12", "12 ", "a 1", "1 b", "-1 5", "1 5 9", "1  5",
                           "99999999999999999999 1", "1.5 2"}) {
    write_file(folder / "i", std::string("0 19\n") + line + "\n35 26\n");
    const auto index = read_tfrecord_index(folder / "i");
    ASSERT_FALSE(index) << line;
    EXPECT_THAT(index.error().message, HasSubstr("/i: line 2 is not"));
  }
}

TEST(TfrecordIndex, TellsAFileThatWasCutBetweenRecordsOrInOne) {
  const TestFolder folder;
  const std::string path = folder / "a.tfrecord";
  write_records(path);
  const std::string whole = read_file(path);
  for (const std::size_t length : {0, 19, 34, 35, 60}) {
    write_file(path, whole.substr(0, length));
    EXPECT_THAT(check(kIndex, path), HasSubstr(fmt::format("file ends at offset {}", length)));
  }
  write_file(path, whole + "x");
  EXPECT_THAT(check(kIndex, path),
              HasSubstr("ends after 3 records at offset 61, but the file has 62 bytes"));
}

TEST(TfrecordIndex, TellsAnIndexOfAnotherFile) {
  const TestFolder folder;
  const std::string path = folder / "a.tfrecord";
  write_records(path);
  EXPECT_THAT(check({{0, 19}, {20, 15}, {35, 26}}, path), HasSubstr("wrong at record 1"));
  EXPECT_THAT(check({{0, 19}, {19, 15}, {34, 27}}, path), HasSubstr("wrong at record 1"));
  EXPECT_THAT(check({{0, 19}, {19, ~std::uint64_t{0}}}, path), HasSubstr("record 1 at offset 19"));
  EXPECT_THAT(check({{0, 19}}, path), HasSubstr("ends after 1 record at offset 19"));
}

TEST(TfrecordIndex, IsNotBuiltFromDamagedRecords) {
  const TestFolder folder;
  write_records(folder / "a");
  std::string damaged = read_file(folder / "a");
  damaged[50] ^= 1;
  write_file(folder / "a", damaged);
  EXPECT_THAT(build_tfrecord_index(folder / "a").error().message,
              HasSubstr("record 2 at offset 35 has a bad data CRC"));
}

}  // namespace
}  // namespace hvd
