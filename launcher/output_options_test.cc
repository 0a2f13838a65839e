#include "launcher/output_options.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

TEST(OutputOptions, AreOffUnlessAskedFor) {
  const auto options = parse({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->output.folder, "");
  EXPECT_FALSE(options->output.has_time);
  EXPECT_TRUE(options->output.has_marks);
}

TEST(OutputOptions, EachSpelling) {
  EXPECT_EQ(parse({"--output-filename", "/tmp/out"})->output.folder, "/tmp/out");
  EXPECT_EQ(parse({"--output-filename=out"})->output.folder,
            std::filesystem::current_path().string() + "/out");
  EXPECT_TRUE(parse({"-prefix-timestamp"})->output.has_time);
  EXPECT_TRUE(parse({"--prefix-timestamp"})->output.has_time);
  EXPECT_TRUE(parse({"--prefix-output-with-timestamp"})->output.has_time);
  EXPECT_FALSE(parse({"--no-tag-output"})->output.has_marks);
  EXPECT_TRUE(parse({"--no-tag-output", "--tag-output"})->output.has_marks);
  expect_usage_errors({{{"--output-filename", ""}, "no folder is named"}});
}

}  // namespace
}  // namespace hvd
