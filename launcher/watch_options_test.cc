#include "launcher/watch_options.h"

#include <gmock/gmock.h>

#include "launcher/options.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "hvdrun");
  words.emplace_back("true");
  return parse_options(words, {});
}

TEST(WatchOptions, AreOffUnlessAskedFor) {
  const auto options = parse({});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->watch.stall_timeout);
  EXPECT_FALSE(options->watch.gpu_period);
  EXPECT_THAT(options->watch.hook, IsEmpty());
  EXPECT_EQ(options->watch.hook_limit, seconds(5));
}

TEST(WatchOptions, TimesAndWords) {
  const auto options = parse({"--stall-timeout", "10m", "--on-stall", "py-spy dump --pid {pid}",
                              "--on-stall-limit", "0.5", "--gpu-stats", "0.2"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->watch.stall_timeout, seconds(600));
  EXPECT_THAT(options->watch.hook, ElementsAre("py-spy", "dump", "--pid", "{pid}"));
  EXPECT_EQ(options->watch.hook_limit, milliseconds(500));
  EXPECT_EQ(options->watch.gpu_period, milliseconds(200));
}

TEST(WatchOptions, ErrorsNameTheOptionAndTheRemedy) {
  const struct {
    std::vector<std::string> words;
    const char* text;
  } cases[] = {
      {{"--stall-timeout", "0.5"}, "--stall-timeout"},
      {{"--stall-timeout", "soon"}, "--stall-timeout"},
      {{"--on-stall", "  "},
       "no program is named; write it as in --on-stall 'py-spy dump --pid {pid}'"},
      {{"--on-stall", "a 'b"}, "--on-stall"},
      {{"--gpu-stats", "0.01"}, "--gpu-stats"},
  };
  for (const auto& c : cases) {
    const auto options = parse(c.words);
    ASSERT_FALSE(options) << c.text;
    EXPECT_EQ(options.error().code, ExitCode::kUsage);
    EXPECT_THAT(options.error().message, HasSubstr(c.text));
  }
}

TEST(HookWords, RankAndHostAreReplacedAndThePidIsLeftToTheNode) {
  EXPECT_THAT(
      hook_words({"dump", "-o", "/tmp/{host}-{rank}.{rank}", "{pid}", "{user}"}, 12, "n{rank}"),
      ElementsAre("dump", "-o", "/tmp/n{rank}-12.12", "{pid}", "{user}"));
}

}  // namespace
}  // namespace hvd
