#include "launcher/watch_options.h"

#include <gmock/gmock.h>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

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
  expect_usage_errors({
      {{"--stall-timeout", "0.5"}, "--stall-timeout"},
      {{"--stall-timeout", "soon"}, "--stall-timeout"},
      {{"--on-stall", "  "},
       "no program is named; write it as in --on-stall 'py-spy dump --pid {pid}'"},
      {{"--on-stall", "a 'b"}, "--on-stall"},
      {{"--gpu-stats", "0.01"}, "--gpu-stats"},
      {{"--gpu-stats", "0"}, "write a duration from 0.1 s"},
      {{"--stall-timeout", "5", "--on-stall", "dump {foo}"},
       "there is no {foo}; replaced are {pid}, {rank}, {host}"},
      {{"--on-stall", "dump {pid}"}, "give --stall-timeout TIME or --timeout TIME as well"},
  });
}

TEST(WatchOptions, AHookNeedsAnOccasion) {
  EXPECT_TRUE(parse({"--on-stall", "dump", "--timeout", "9"}));
  EXPECT_TRUE(parse({"--on-stall", "dump", "-x", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=9"}));
  EXPECT_FALSE(parse({"--on-stall", "dump", "-x", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=0"}));
  EXPECT_TRUE(parse_options({"hvdrun", "--on-stall", "dump", "true"},
                            {{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "9"}}));
}

TEST(HookWords, RankAndHostAreReplacedAndThePidIsLeftToTheNode) {
  EXPECT_THAT(
      hook_words({"dump", "-o", "/tmp/{host}-{rank}.{rank}", "{pid}", "{user}"}, 12, "n{rank}"),
      ElementsAre("dump", "-o", "/tmp/n{rank}-12.12", "{pid}", "{user}"));
}

}  // namespace
}  // namespace hvd
