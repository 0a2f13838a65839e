#include "training/formats/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <vector>

#include "training/formats/crc32c.h"
#include "training/formats/test_files.h"

namespace hvd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kFoo = "03 00 00 00 00 00 00 00 b0 99 49 0e 66 6f 6f 61 8a be fe";
constexpr std::string_view kEmpty = "00 00 00 00 00 00 00 00 29 03 98 07 d8 ea 82 a2";
constexpr std::string_view kExample =
    "0a 2a 0a 0c 0a 01 61 12 07 1a 05 0a 03 01 ac 02 0a 0d 0a 01 62 12 08 12 06 0a 04 00 00 c0 3f "
    "0a 0b 0a 01 63 12 06 0a 04 0a 02 68 69";

std::string bytes_00_to_1f() {
  std::string bytes(32, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}

// Three records of ten bytes: 78 bytes.
std::string three_records() {
  std::string file;
  for (const char digit : {'0', '1', '2'}) {
    const std::string payload(10, digit);
    const TfrecordFrame frame = tfrecord_frame(payload);
    file += frame.header + payload + frame.footer;
  }
  return file;
}

// The payloads until the end, or until the error that is returned with them.
struct Read {
  std::vector<std::string> payloads;
  std::string error;
};
Read read_all(const std::string& path) {
  auto reader = TfrecordReader::open(path);
  if (!reader) return {{}, reader.error().message};
  Read read;
  while (true) {
    const auto payload = reader->next();
    if (!payload) {
      read.error = payload.error().message;
      return read;
    }
    if (!*payload) return read;
    read.payloads.emplace_back(**payload);
  }
}

Read read_bytes(std::string_view bytes) {
  const TestFolder folder;
  write_file(folder / "a.tfrecord", bytes);
  return read_all(folder / "a.tfrecord");
}

TEST(Crc32c, PublishedVectorsPlainAndMasked) {
  struct Row {
    std::string bytes;
    std::uint32_t crc;
    std::uint32_t masked;
  };
  const std::vector<Row> rows = {
      {"", 0x00000000, 0xa282ead8},
      {"a", 0xc1d04330, 0x28e46e78},
      {"123456789", 0xe3069283, 0xc78ab0e5},
      {std::string(32, '\0'), 0x8a9136aa, 0x0fd7fffa},
      {std::string(32, '\xff'), 0x62a8ab43, 0xf909b029},
      {bytes_00_to_1f(), 0x46dd794e, 0x951f7892},
      {"foo", 0xcfc4ae1d, 0xfebe8a61},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(crc32c(row.bytes), row.crc) << row.bytes;
    EXPECT_EQ(mask_crc32c(row.crc), row.masked) << row.bytes;
    EXPECT_EQ(unmask_crc32c(row.masked), row.crc) << row.bytes;
  }
}

TEST(TfrecordFrame, GoldenBytes) {
  const auto whole = [](const std::string& payload) {
    const TfrecordFrame frame = tfrecord_frame(payload);
    return frame.header + payload + frame.footer;
  };
  EXPECT_EQ(whole("foo"), from_hex(kFoo));
  EXPECT_EQ(whole(""), from_hex(kEmpty));
  const TfrecordFrame example = tfrecord_frame(from_hex(kExample));
  EXPECT_EQ(example.header, from_hex("2c 00 00 00 00 00 00 00 f4 ae cc 45"));
  EXPECT_EQ(example.footer, from_hex("3e 17 ea 70"));
  EXPECT_EQ(three_records().substr(0, 26),
            from_hex("0a00000000000000 aea3bf3a 30303030303030303030 d37e0c52"));
}

TEST(TfrecordWriter, WritesGoldenBytesAndTellsOffsets) {
  const TestFolder folder;
  const std::string path = folder / "a.tfrecord";
  auto writer = TfrecordWriter::create(path);
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(writer->append("foo").value(), 0U);
  EXPECT_EQ(writer->append("").value(), 19U);
  EXPECT_EQ(writer->size(), 35U);
  ASSERT_TRUE(writer->flush());
  EXPECT_EQ(read_file(path), from_hex(kFoo) + from_hex(kEmpty));
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(writer->append(large).value(), 35U);
  ASSERT_TRUE(writer->close());
  EXPECT_FALSE(writer->append("more").and_then([&](auto) { return writer->flush(); }));
  EXPECT_EQ(read_all(path).payloads, (std::vector<std::string>{"foo", "", large}));
}

TEST(TfrecordWriter, AFileThatCannotBeWrittenIsOneSentence) {
  const TestFolder folder;
  const auto writer = TfrecordWriter::create(folder / "none/a.tfrecord");
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message, AllOf(HasSubstr("none/a.tfrecord: No such file"),
                                            HasSubstr("make the folder first")));
}

TEST(TfrecordWriter, AFullDiskIsToldAndNothingMoreIsWritten) {
  auto writer = TfrecordWriter::create("/dev/full");
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append("foo"));
  EXPECT_THAT(writer->flush().error().message,
              HasSubstr("cannot write /dev/full: No space left on device (19 bytes needed"));
  EXPECT_FALSE(writer->flush());
  EXPECT_FALSE(writer->close());
}

TEST(TfrecordReader, AnEmptyFileHasNoRecords) {
  EXPECT_EQ(read_bytes("").error, "");
  EXPECT_TRUE(read_bytes("").payloads.empty());
}

TEST(TfrecordReader, EveryCutIsToldUnlessItIsBetweenRecords) {
  const std::string whole = three_records();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const Read read = read_bytes(whole.substr(0, length));
    EXPECT_EQ(read.payloads.size(), length / 26) << length;
    if (length % 26 == 0) {
      EXPECT_EQ(read.error, "") << length;
      continue;
    }
    const std::string place = fmt::format("a.tfrecord: record {} at offset {} is truncated ({} of ",
                                          length / 26, length / 26 * 26, length % 26);
    EXPECT_THAT(read.error, HasSubstr(place)) << length;
  }
}

TEST(TfrecordReader, EveryFlippedBitIsTold) {
  const std::string whole = three_records();
  for (std::size_t byte = 26; byte < 52; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      const Read read = read_bytes(damaged);
      const std::string kind = byte < 38 ? "bad length CRC" : "bad data CRC";
      EXPECT_EQ(read.payloads.size(), 1U);
      EXPECT_THAT(read.error, HasSubstr("record 1 at offset 26 has a " + kind)) << byte;
    }
  }
}

TEST(TfrecordReader, AfterABadDataCrcTheNextRecordIsRead) {
  const TestFolder folder;
  std::string damaged = three_records();
  damaged[30 + 12] = 'x';
  write_file(folder / "a", damaged);
  auto reader = TfrecordReader::open(folder / "a");
  ASSERT_TRUE(reader->next());
  EXPECT_FALSE(reader->next());
  EXPECT_EQ(reader->next().value(), std::string(10, '2'));
  EXPECT_EQ(reader->next().value(), std::nullopt);
}

TEST(TfrecordReader, AfterABadLengthTheSameErrorComesAgain) {
  const TestFolder folder;
  std::string damaged = three_records();
  damaged[26] = 11;
  write_file(folder / "a", damaged);
  auto reader = TfrecordReader::open(folder / "a");
  ASSERT_TRUE(reader->next());
  const std::string first = reader->next().error().message;
  EXPECT_EQ(reader->next().error().message, first);
  // With its offset from an index, the record behind it is still there.
  EXPECT_EQ(reader->read_at(52, 2).value(), std::string(10, '2'));
}

TEST(TfrecordReader, AnAbsurdLengthWithARightChecksumIsNotBelieved) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, kMaxTfrecordPayload + 1}) {
    const std::string text(reinterpret_cast<const char*>(&length), sizeof length);
    const std::uint32_t crc = mask_crc32c(crc32c(text));
    const std::string header = text + std::string(reinterpret_cast<const char*>(&crc), sizeof crc);
    EXPECT_THAT(read_bytes(header + std::string(100, '0')).error,
                HasSubstr(fmt::format("record 0 at offset 0 claims {} bytes", length)));
  }
}

TEST(TfrecordReader, WhatIsNoRecordFileIsTold) {
  struct Row {
    std::string content;
    std::string sentence;
  };
  const std::vector<Row> rows = {
      {from_hex("1f 8b 08 00 00 00 00 00 00 03 01 02 03 04"), "looks like gzip"},
      {from_hex("1f 8b"), "looks like gzip"},
      {from_hex("78 9c 4b cb cf 07 00 02 82 01 45 00 00 00"), "looks like zlib"},
      {from_hex("78 da 4b cb cf 07 00 02 82 01 45 00 00 00"), "looks like zlib"},
      {from_hex("28 b5 2f fd 04 58 19 00 00 66 6f 6f 00 00"), "looks like zstd"},
      {"\n <!DOCTYPE html><html>404 not found</html>", "looks like an HTML page"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 78\n", "git lfs pull"},
      {"no records at all, but long enough for a header", "is it a TFRecord file at all?"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(read_bytes(row.content).error,
                AllOf(HasSubstr("record 0 at offset 0"), HasSubstr(row.sentence)));
  }
}

TEST(TfrecordReader, ARecordMayStartLikeACompressedFile) {
  // A payload of 0x9c78 bytes starts as zlib does; its length CRC says that it is a record.
  const std::string payload(0x9c78, 'p');
  const TfrecordFrame frame = tfrecord_frame(payload);
  EXPECT_EQ(read_bytes(frame.header + payload + frame.footer).payloads,
            std::vector<std::string>{payload});
}

TEST(TfrecordReader, ReadsAtOffsetsAlsoAfterAMove) {
  const TestFolder folder;
  write_file(folder / "a", three_records());
  auto opened = TfrecordReader::open(folder / "a");
  const auto early = opened->read_at(0);
  const TfrecordReader reader = std::move(*opened);
  EXPECT_EQ(*early, std::string(10, '0'));
  EXPECT_EQ(reader.read_at(26).value(), std::string(10, '1'));
  EXPECT_THAT(reader.read_at(78, 3).error().message,
              HasSubstr("record 3 at offset 78 would be behind the end of the file (78 bytes)"));
  EXPECT_FALSE(reader.read_at(~std::uint64_t{0}));
  EXPECT_THAT(reader.read_at(27, 1).error().message, HasSubstr("bad length CRC"));
}

TEST(TfrecordReader, OnlyRegularFilesAreOpened) {
  const TestFolder folder;
  EXPECT_THAT(read_all(folder / "none").error, HasSubstr("none: No such file or directory"));
  EXPECT_THAT(read_all(folder.path()).error, HasSubstr("is not a regular file"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_all(folder / "pipe").error, HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace hvd
