#include "training/petrv2/data/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "training/petrv2/data/example_fields.h"
#include "training/petrv2/data/record_set_fixture.h"

namespace hvd::petrv2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return bytes;
}

const std::string kGolden = from_hex(
    "0a 2a 0a 0c 0a 01 61 12 07 1a 05 0a 03 01 ac 02 0a 0d 0a 01 62 12 08 12 06 0a 04 00 00 c0 3f "
    "0a 0b 0a 01 63 12 06 0a 04 0a 02 68 69");

using Int64s = std::vector<std::int64_t>;
using Floats = std::vector<float>;

TEST(Example, BytesOfTheGoldenExample) {
  ExampleBuilder example;
  example.add_bytes("c", "hi");  // keys come out sorted
  example.add("b", Floats{1.5F});
  example.add("a", Int64s{1, 300});
  EXPECT_EQ(example.serialize(), kGolden);
}

TEST(Example, ANegativeNumberTakesTenBytes) {
  ExampleBuilder example;
  example.add_int64("a", -1);
  EXPECT_THAT(example.serialize(),
              HasSubstr(from_hex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01")));
  EXPECT_EQ(ExampleFields::parse(example.serialize())->int64("a"), -1);
}

TEST(Example, ReadsTheGoldenExample) {
  const auto fields = ExampleFields::parse(kGolden);
  ASSERT_TRUE(fields);
  EXPECT_THAT(*fields->int64s("a", 2), ElementsAre(1, 300));
  EXPECT_THAT(*fields->floats("b", std::nullopt), ElementsAre(1.5F));
  EXPECT_EQ(fields->string("c"), "hi");
}

TEST(Example, ReadsWhatOtherWritersWrite) {
  // Unpacked int64, two chunks of packed ones, an unknown field, a key twice, a feature without
  // list.
  const auto unpacked =
      ExampleFields::parse(from_hex("0a 0d 0a 0b 0a 01 61 12 06 1a 04 08 05 08 06"));
  EXPECT_THAT(*unpacked->int64s("a", 2), ElementsAre(5, 6));
  const auto chunks =
      ExampleFields::parse(from_hex("0a 0f 0a 0d 0a 01 61 12 08 1a 06 0a 01 05 0a 01 06"));
  EXPECT_THAT(*chunks->int64s("a", 2), ElementsAre(5, 6));
  const auto twice = ExampleFields::parse(from_hex(
      "0a 18 0a 0a 0a 01 61 12 05 1a 03 0a 01 05 0a 0a 0a 01 61 12 05 1a 03 0a 01 07 78 01"));
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->int64("a"), 7);
  const auto empty = ExampleFields::parse(from_hex("0a 07 0a 05 0a 01 61 12 00"));
  ASSERT_TRUE(empty);
  EXPECT_THAT(*empty->int64s("a", std::nullopt), ElementsAre());
  EXPECT_THAT(*empty->floats("absent", 0), ElementsAre());
}

TEST(Example, NamesTheKeyThatIsWrong) {
  const auto fields = ExampleFields::parse(kGolden);
  EXPECT_EQ(fields->int64("a").error().message, "key a has 2 values, not 1");
  EXPECT_EQ(fields->floats("a", 2).error().message, "key a is not a list of float");
  EXPECT_EQ(fields->doubles("c", 16).error().message, "key c has 2 bytes, not those of 16 fp64");
  EXPECT_FALSE(ExampleFields::parse("<html>no such file</html>"));
}

TEST(Records, AStepSurvives) {
  const StepRecord step = fixture_step("scene-0061", 12);
  const auto read = decode_step(encode_step(step));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->scene, step.scene);
  EXPECT_EQ(read->step_id, 12);
  EXPECT_TRUE(read->is_key);
  EXPECT_EQ(read->jpeg, step.jpeg);
  EXPECT_EQ(read->timestamp_us, step.timestamp_us);
  EXPECT_EQ(read->height, step.height);
  EXPECT_EQ(read->width, step.width);
  EXPECT_EQ(read->intrinsic, step.intrinsic);
  EXPECT_EQ(read->cam2global, step.cam2global);  // to the last bit
}

TEST(Records, ASampleSurvives) {
  SampleRecord sample = fixture_sample("a", 8, 17, 3);
  sample.boxes[1].box.velocity[0] = std::numeric_limits<double>::quiet_NaN();
  sample.boxes[2].box.label = -1;
  sample.map_bits = std::string(15'000, '\x5a');
  const auto read = decode_sample(encode_sample(sample));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->sample_token, "a-8");
  EXPECT_EQ(read->timestamp_us, sample.timestamp_us);
  EXPECT_EQ(read->lidar2global, sample.lidar2global);
  EXPECT_EQ(read->cur_step, 17);
  EXPECT_THAT(read->prev_steps, ElementsAre(16, 15, 14));
  ASSERT_EQ(read->boxes.size(), 3U);
  EXPECT_EQ(read->boxes[0].box.center, sample.boxes[0].box.center);
  EXPECT_EQ(read->boxes[0].box.heading, 0.25);
  EXPECT_EQ(read->boxes[0].instance, "instance");
  EXPECT_TRUE(std::isnan(read->boxes[1].box.velocity[0]));
  EXPECT_EQ(read->boxes[2].box.label, -1);
  EXPECT_EQ(read->boxes[2].num_lidar_pts, 3);
  EXPECT_EQ(read->map_bits, sample.map_bits);
  EXPECT_EQ(encode_sample(*read), encode_sample(sample));
}

TEST(Records, ASampleWithoutBoxesOrPastSurvives) {
  SampleRecord sample = fixture_sample("a", 0, 0, 0);
  sample.boxes.clear();
  const auto read = decode_sample(encode_sample(sample));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->boxes.empty());
  EXPECT_TRUE(read->prev_steps.empty());
}

TEST(Records, SayWhatIsWrong) {
  StepRecord step = fixture_step("a", 0);
  step.cam2global[3][5] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode_step(encode_step(step)).error().message,
            "key image/cam2global holds a value that is not finite");
  EXPECT_EQ(decode_step(encode_sample(fixture_sample("a", 0, 0, 0))).error().message,
            "key step_id has 0 values, not 1");
  SampleRecord sample = fixture_sample("a", 0, 0, 0);
  sample.boxes[0].box.size[1] = 0;
  EXPECT_EQ(decode_sample(encode_sample(sample)).error().message,
            "gt/size holds a length that is not above 0");
  sample = fixture_sample("a", 0, 0, 0);
  sample.boxes[0].box.label = 10;
  EXPECT_THAT(decode_sample(encode_sample(sample)).error().message, HasSubstr("outside -1 to 9"));
  ExampleBuilder future;
  future.add_int64("format_version", 2);
  EXPECT_THAT(decode_step(future.serialize()).error().message,
              HasSubstr("format_version is not 1"));
}

TEST(Records, TheFirstBytesTellTheKind) {
  EXPECT_EQ(peek_kind(encode_step(fixture_step("a", 0)).substr(0, 256)), RecordKind::kStep);
  EXPECT_EQ(peek_kind(encode_sample(fixture_sample("a", 0, 0, 0)).substr(0, 256)),
            RecordKind::kSample);
  EXPECT_EQ(peek_kind(kGolden), RecordKind::kUnknown);
  EXPECT_EQ(peek_kind(""), RecordKind::kUnknown);
  EXPECT_EQ(peek_kind(from_hex("0a ff ff ff ff 0f 0a ff ff ff ff 0f 0a 01")), RecordKind::kUnknown);
}

}  // namespace
}  // namespace hvd::petrv2
