#include "launcher/placeholders.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::HasSubstr;

const std::vector<std::string_view> kKnown = {"{pid}", "{rank}"};

TEST(Placeholders, KnownOnesAndOtherBracesPass) {
  for (const char* word : {"", "{pid}", "x{pid}{rank}y", "{", "}", "{}", "{ foo }", "{print $1}",
                           "${foo}", "{FOO}", "{a,b}", "{pid", "{1..3}", "{{pid}}", "a{"}) {
    EXPECT_TRUE(check_placeholders({"dump", word}, kKnown, "--on-stall")) << word;
  }
}

TEST(Placeholders, UnknownOnesAreNamedWithTheKnown) {
  for (const char* word : {"{foo}", "{pid}{foo}", "${x}{foo}", "{{foo}}", "--out={foo}.txt"}) {
    const auto checked = check_placeholders({"dump", word}, kKnown, "--on-stall");
    ASSERT_FALSE(checked) << word;
    EXPECT_EQ(checked.error().code, ExitCode::kUsage);
    EXPECT_THAT(checked.error().message,
                HasSubstr("there is no {foo}; replaced are {pid}, {rank}"));
  }
}

}  // namespace
}  // namespace hvd
