#include "training/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "training/formats/test_files.h"

namespace hvd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string with_length(std::string_view json, std::uint64_t length) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + std::string(json);
}

// The whole file of a header and its data.
std::string file_of(std::string_view json, std::string_view data) {
  return with_length(json, json.size()) + std::string(data);
}

// The error of opening such a file; empty if it opens.
std::string open_error(std::string_view content) {
  const TestFolder folder;
  write_file(folder / "m.safetensors", content);
  const auto file = SafetensorsFile::open(folder / "m.safetensors");
  if (file) return "";
  EXPECT_THAT(file.error().message, HasSubstr("m.safetensors"));
  return file.error().message;
}

TEST(Safetensors, GoldenBytes) {
  const TestFolder folder;
  const std::vector<float> values = {1, 2};
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 8);
  const auto num_bytes = write_safetensors(
      folder / "m", {{{"b", "U8", {3}}, "xyz"}, {{"a", "F32", {2}}, bytes}}, {{"step", "3"}});
  ASSERT_TRUE(num_bytes) << num_bytes.error().message;
  // The wider type comes first; the header is padded to 8.
  const std::string json =
      R"({"__metadata__":{"step":"3"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  ASSERT_EQ(json.size(), 135U);
  EXPECT_EQ(read_file(folder / "m"),
            with_length(json + " ", 136) + from_hex("0000803f 00000040") + "xyz");
  EXPECT_EQ(*num_bytes, 8U + 136U + 11U);
}

TEST(Safetensors, RoundTripWithScalarsEmptyTensorsAndOddNames) {
  const TestFolder folder;
  const std::string eight = "12345678";
  ASSERT_TRUE(write_safetensors(folder / "m",
                                {{{"scalar", "F64", {}}, eight},
                                 {{"empty", "F32", {0, 5}}, ""},
                                 {{"head.é \"x\"\n", "BF16", {2, 2}}, eight},
                                 {{"flag", "BOOL", {1}}, "\x01"}},
                                {{"schedule", "{\"lr\": 2e-4}"}, {"empty", ""}}));
  const auto file = SafetensorsFile::open(folder / "m");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 4U);
  EXPECT_TRUE(file->tensors().at("scalar").shape.empty());
  EXPECT_THAT(file->tensors().at("empty").shape, ElementsAre(0, 5));
  EXPECT_EQ(file->bytes("scalar").value(), eight);
  EXPECT_EQ(file->bytes("empty").value(), "");
  EXPECT_EQ(file->bytes("head.é \"x\"\n").value(), eight);
  EXPECT_EQ(file->bytes("flag").value(), "\x01");
  EXPECT_EQ(file->metadata(), (TensorMetadata{{"schedule", "{\"lr\": 2e-4}"}, {"empty", ""}}));
  EXPECT_THAT(file->bytes("none").error().message, HasSubstr("/m has no tensor \"none\""));
}

TEST(Safetensors, EveryTensorIsAlignedToItsItems) {
  std::vector<TensorSpec> specs;
  for (const char* dtype : {"U8", "F64", "F16", "F32", "I64", "BF16", "BOOL", "I32"}) {
    specs.push_back({std::string("t") + dtype, dtype, {3}});
  }
  const auto plan = plan_safetensors(specs, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->header.size() % 8, 0U);
  const auto header = parse_safetensors_header(plan->header.substr(8), plan->num_data_bytes);
  ASSERT_TRUE(header) << header.error().message;
  for (const auto& [name, place] : header->tensors) {
    EXPECT_EQ(place.begin % tensor_item_size(place.dtype).value(), 0U) << name;
  }
}

TEST(Safetensors, WhatCannotBeWrittenIsRefusedBeforeTheFileIsTouched) {
  const TestFolder folder;
  write_file(folder / "m", "before");
  struct Row {
    std::vector<TensorBytes> tensors;
    std::string sentence;
  };
  const std::vector<Row> rows = {
      {{{{"a", "F32", {2}}, "1234"}}, "tensor a needs 8 bytes and was given 4"},
      {{{{"a", "F31", {1}}, "1234"}}, "dtype \"F31\""},
      {{{{"a", "F32", {1UL << 62, 8}}, "1234"}}, "cannot be written"},
      {{{{"a", "U8", {1}}, "1"}, {{"a", "U8", {1}}, "1"}}, "two tensors named \"a\""},
      {{{{"__metadata__", "U8", {1}}, "1"}}, "may not be named __metadata__"},
      {{{{"\xff", "U8", {1}}, "1"}}, "not UTF-8"},
  };
  for (const Row& row : rows) {
    const auto written = write_safetensors(folder / "m", row.tensors, {});
    ASSERT_FALSE(written) << row.sentence;
    EXPECT_THAT(written.error().message,
                AllOf(HasSubstr("cannot write " + folder.path()), HasSubstr(row.sentence)));
  }
  EXPECT_EQ(read_file(folder / "m"), "before");
}

TEST(Safetensors, ItemSizes) {
  EXPECT_EQ(tensor_item_size("BOOL"), 1U);
  EXPECT_EQ(tensor_item_size("BF16"), 2U);
  EXPECT_EQ(tensor_item_size("F32"), 4U);
  EXPECT_EQ(tensor_item_size("I64"), 8U);
  EXPECT_EQ(tensor_item_size("f32"), std::nullopt);
  EXPECT_EQ(tensor_num_bytes("F32", {}), 4U);
  EXPECT_EQ(tensor_num_bytes("F32", {3, 0}), 0U);
  EXPECT_EQ(tensor_num_bytes("U8", {1UL << 32, 1UL << 32}), std::nullopt);
}

TEST(SafetensorsFile, BrokenFramesAreTold) {
  const std::string good =
      file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "xyz");
  EXPECT_EQ(open_error(good), "");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(open_error(good.substr(0, length)), "") << length;
  }
  EXPECT_THAT(open_error(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(open_error(good.substr(0, 20)), HasSubstr("the file was cut"));
  EXPECT_THAT(open_error(good + "z"), HasSubstr("take 3 bytes, but 4 bytes of data"));
  EXPECT_THAT(open_error(with_length("{}", 100'000'001)), HasSubstr("more than the 100000000"));
  EXPECT_THAT(open_error(with_length("{}", ~std::uint64_t{0})), HasSubstr("allowed"));
  EXPECT_EQ(open_error(file_of("{}      ", "")), "");
}

TEST(SafetensorsFile, EveryMalformedHeaderIsOneSentence) {
  struct Row {
    const char* json;  // with three bytes of data
    const char* sentence;
  };
  const std::vector<Row> rows = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {" {}", "not a JSON object"},
      {"{", "not valid JSON"},
      {"{\"\xff\":1}", "not valid JSON"},
      {"{} x", "not valid JSON"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"a":{}})", R"(key "a" twice)"},
      {R"({"a":{"dtype":"U8","dtype":"I8","shape":[3],"data_offsets":[0,3]}})", "\"dtype\" twice"},
      {R"({"a":3})", R"(tensor "a": its entry is not an object)"},
      {R"({"a":{"shape":[3],"data_offsets":[0,3]}})", "no dtype"},
      {R"({"a":{"dtype":8,"shape":[3],"data_offsets":[0,3]}})", "no dtype"},
      {R"({"a":{"dtype":"U9","shape":[3],"data_offsets":[0,3]}})", R"("U9" is unknown)"},
      {R"({"a":{"dtype":"U8","data_offsets":[0,3]}})", "shape is not a list"},
      {R"({"a":{"dtype":"U8","shape":[-3],"data_offsets":[0,3]}})", "shape is not a list"},
      {R"({"a":{"dtype":"U8","shape":[3.0],"data_offsets":[0,3]}})", "shape is not a list"},
      {R"({"a":{"dtype":"U8","shape":"3","data_offsets":[0,3]}})", "shape is not a list"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0]}})", "not two whole numbers"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[-1,2]}})", "not two whole numbers"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[3,0]}})", "is not inside"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "not inside the 3 bytes"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}})", "takes 2 bytes"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,3]}})",
       "impossibly large"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "starts at 1 where the one"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "take 2 bytes, but 3"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       "an overlap"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       "a hole"},
      {R"({"__metadata__":3})", "__metadata__ is not an object"},
      {R"({"__metadata__":{"a":3}})", R"("a" is not text)"},
  };
  for (const Row& row : rows) {
    const std::string error = open_error(file_of(row.json, "xyz"));
    EXPECT_THAT(error, HasSubstr(row.sentence)) << row.json;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(SafetensorsFile, ADeeplyNestedHeaderIsRefusedNotFollowed) {
  EXPECT_THAT(open_error(file_of("{\"a\":" + std::string(200'000, '['), "")),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(open_error(file_of(
                  "{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}", "")),
              HasSubstr("not an object"));
}

}  // namespace
}  // namespace hvd
