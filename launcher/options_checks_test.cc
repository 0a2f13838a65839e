#include "launcher/options_checks.h"

#include <gmock/gmock.h>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OptionsChecks, SshOptionsWithoutAHostOfSshAreNoted) {
  const auto local = parse({"-p", "2222", "-np", "2"});
  ASSERT_TRUE(local) << local.error().message;
  EXPECT_THAT(local->notes, ElementsAre("no host is reached by ssh: --ssh-port has no effect"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-p", "2222", "-H", "localhost,node1"},
        std::vector<std::string>{"-p", "2222", "--transport", "ssh"},
        std::vector<std::string>{"-p", "2222", "--max-restarts", "1", "--spare", "node1"},
        std::vector<std::string>{"-np", "2"}}) {
    const auto options = parse(words);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_THAT(options->notes, IsEmpty()) << testing::PrintToString(words);
  }
}

TEST(OptionsChecks, OptionsThatNeedAnotherAreRefusedWithoutIt) {
  expect_usage_errors({
      {{"--spare", "node2"}, "add it, or leave --spare out"},
      {{"--max-restarts", "2", "-H", "node1,node2:1", "--spare", "node3,node2"},
       "--spare node2: this host is in use from the start (-H node1,node2:1)"},
      {{"--max-restarts", "2", "--stdin"}, "leave --stdin out"},
      {{"--on-stall", "dump"}, "give --stall-timeout TIME or --timeout TIME"},
      {{"--timeout-signal", "USR1@1"}, "give --timeout TIME as well"},
  });
}

}  // namespace
}  // namespace hvd
