#include "training/petrv2/verify/options.h"

#include <gtest/gtest.h>

namespace hvd::petrv2 {
namespace {

std::string verify_error(const std::vector<std::string>& arguments) {
  const auto options = parse_verify_options(arguments);
  if (options) return "no error";
  EXPECT_EQ(options.error().code, ExitCode::kUsage);
  return options.error().message;
}

TEST(VerifyOptions, NoneMeansGolden) {
  EXPECT_TRUE(parse_verify_options({})->is_golden);
  EXPECT_FALSE(parse_verify_options({"--batch", "2"})->is_golden);
}

TEST(VerifyOptions, AllAreRead) {
  const auto options = parse_verify_options(
      {"--config", "tiny", "--size=64x160", "--queries", "60", "--batch=2", "--boxes", "b.json",
       "--bn3-scale", "0.25", "--device", "cuda:1", "--precision", "bf16", "--json", "out.json"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->config, "tiny");
  EXPECT_EQ(options->height, 64);
  EXPECT_EQ(options->width, 160);
  EXPECT_EQ(options->queries, 60);
  EXPECT_EQ(options->batch, 2);
  EXPECT_EQ(options->boxes, "b.json");
  EXPECT_EQ(options->bn3_scale, 0.25);
  EXPECT_EQ(options->device, "cuda:1");
  EXPECT_EQ(options->precision, VerifyPrecision::kBf16);
  EXPECT_EQ(options->json, "out.json");
}

TEST(VerifyOptions, ErrorsAreOneSentence) {
  for (const char* size : {"64", "60x96", "64x", "x96", "64x96x3", "0x0"}) {
    EXPECT_EQ(verify_error({"--size", size}),
              fmt::format("--size {} is not HEIGHTxWIDTH in multiples of 32", size));
  }
  EXPECT_EQ(verify_error({"--queries", "0"}),
            "--queries 0 is out of place; give a whole number from 1 to 1048576");
  EXPECT_EQ(verify_error({"--precision", "fp8"}),
            "--precision fp8 is not one of fp64|fp32|tf32|bf16|fp16");
  EXPECT_EQ(verify_error({"--json"}), "--json needs a value; see petrv2 verify --help");
  EXPECT_EQ(verify_error({"--colour", "red"}),
            "--colour is no option of petrv2 verify; see petrv2 verify --help");
  EXPECT_EQ(verify_error({"word"}), "word is no option of petrv2 verify; see petrv2 verify --help");
}

TEST(InspectOptions, WantOneSubject) {
  EXPECT_EQ(parse_inspect_options({"--config", "tiny", "--json"})->config, "tiny");
  EXPECT_EQ(parse_inspect_options({"records"})->folder, "records");
  EXPECT_EQ(parse_inspect_options({"--json", "records"})->folder, "records");
  EXPECT_FALSE(parse_inspect_options({}));
  EXPECT_FALSE(parse_inspect_options({"--config", "tiny", "records"}));
  EXPECT_FALSE(parse_inspect_options({"one", "two"}));
}

}  // namespace
}  // namespace hvd::petrv2
