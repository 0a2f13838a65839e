#include "training/petrv2/synth/command_line.h"

#include <gmock/gmock.h>

#include "training/petrv2/synth/commands.h"

namespace hvd::petrv2 {
namespace {

using testing::HasSubstr;

using Words = std::vector<std::string>;

TEST(SynthOptions, ReadsEveryOption) {
  const auto options = parse_synth_options({"--out", "d", "--scenes=3", "--samples-per-scene", "7",
                                            "--seed", "18446744073709551615", "--image-size",
                                            "1600x900", "--boxes", "0", "--records", "--json"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->out, "d");
  EXPECT_EQ(options->plan.num_scenes, 3U);
  EXPECT_EQ(options->plan.samples_per_scene, 7U);
  EXPECT_EQ(options->plan.seed, ~std::uint64_t{0});
  EXPECT_EQ(options->plan.image.width, 1600);
  EXPECT_EQ(options->plan.image.height, 900);
  EXPECT_EQ(options->plan.objects_per_scene, 0U);
  EXPECT_TRUE(options->with_records);
  EXPECT_TRUE(options->as_json);
}

TEST(ConvertOptions, ReadsEveryOption) {
  const auto options = parse_convert_options({"--dataroot", "r", "--version", "v1.0-trainval",
                                              "--split", "val", "--out", "o", "--shards", "128"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->request.dataroot, "r");
  EXPECT_EQ(options->request.version, "v1.0-trainval");
  EXPECT_EQ(options->request.split, "val");
  EXPECT_EQ(options->request.out, "o");
  EXPECT_EQ(options->request.num_shards, 128U);
  EXPECT_FALSE(options->as_json);
  const auto defaults = parse_convert_options({"--dataroot=r", "--version=v", "--out=o"});
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->request.split, "all");
  EXPECT_FALSE(defaults->request.num_shards);
}

TEST(SynthOptions, RefusesInOneSentence) {
  const std::pair<Words, std::string> rows[] = {
      {{}, "petrv2 synth needs --out"},
      {{"--out"}, "--out needs a value"},
      {{"--out="}, "--out is empty"},
      {{"--out", "d", "--scenes", "0"}, "--scenes 0 is out of place; give a whole number from 1"},
      {{"--out", "d", "--scenes", "2.5"}, "--scenes 2.5"},
      {{"--out", "d", "--scenes", "-1"}, "--scenes -1"},
      {{"--out", "d", "--seed", "18446744073709551616"}, "--seed"},
      {{"--out", "d", "--image-size", "800"}, "write WIDTHxHEIGHT"},
      {{"--out", "d", "--image-size", "800x"}, "--image-size 800x is no size"},
      {{"--out", "d", "--image-size", "63x450"}, "from 64 to 4096"},
      {{"--out", "d", "--boxes", "201"}, "from 0 to 200"},
      {{"--out", "d", "--colour"}, "--colour is no option of petrv2 synth"},
      {{"--out", "d", "-x"}, "-x is no option"},
      {{"--out", "d", "--json=yes"}, "--json=yes is no option"},
      {{"--out", "d", "more"}, "more is no option"}};
  for (const auto& [words, expected] : rows) {
    const auto options = parse_synth_options(words);
    ASSERT_FALSE(options) << testing::PrintToString(words);
    EXPECT_THAT(options.error().message, HasSubstr(expected));
    EXPECT_EQ(options.error().code, ExitCode::kUsage);
  }
}

TEST(ConvertOptions, NamesWhatIsMissing) {
  const std::pair<Words, std::string> rows[] = {
      {{"--version", "v", "--out", "o"}, "--dataroot"},
      {{"--dataroot", "r", "--out", "o"}, "--version"},
      {{"--dataroot", "r", "--version", "v"}, "--out"},
      {{"--dataroot", "r", "--version", "v", "--out", "o", "--shards", "0"}, "--shards 0"}};
  for (const auto& [words, expected] : rows) {
    const auto options = parse_convert_options(words);
    ASSERT_FALSE(options);
    EXPECT_THAT(options.error().message, HasSubstr(expected));
  }
}

TEST(Commands, ExitCodesTellUsageFromData) {
  EXPECT_EQ(run_synth({"--scenes", "none"}), 2);
  EXPECT_EQ(run_synth({}), 2);
  EXPECT_EQ(run_synth({"--out", "/dev/null/d"}), 74);
  EXPECT_EQ(run_convert({"-q"}), 2);
  EXPECT_EQ(run_convert({"--dataroot", "/nowhere", "--version", "v", "--out", "/dev/null/d"}), 74);
  EXPECT_EQ(run_convert({"--help"}), 0);
}

TEST(Help, ShowsEveryOption) {
  EXPECT_THAT(synth_help(), HasSubstr("--samples-per-scene N"));
  EXPECT_THAT(synth_help(), HasSubstr("--records"));
  EXPECT_THAT(convert_help(), HasSubstr("--dataroot DIR"));
}

}  // namespace
}  // namespace hvd::petrv2
