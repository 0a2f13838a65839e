#include "agent/greeting.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using ::testing::ElementsAre;

const std::string kGreetedJob = "0123456789abcdef0123456789abcdef";

TEST(ParseGreeting, TakesMarkerAndWords) {
  const auto greeting =
      parse_greeting("M-1 --stdio --job " + kGreetedJob + " --node 7 --user-scope");
  ASSERT_TRUE(greeting.has_value());
  EXPECT_EQ(greeting->arguments.marker, "M-1");
  EXPECT_EQ(greeting->arguments.role, AgentArguments::Role::kServe);
  EXPECT_EQ(greeting->arguments.job_id, kGreetedJob);
  EXPECT_EQ(greeting->arguments.node, 7U);
  EXPECT_THAT(greeting->words,
              ElementsAre("--stdio", "--job", kGreetedJob, "--node", "7", "--user-scope"));
}

TEST(ParseGreeting, TakesAReap) {
  const auto greeting =
      parse_greeting("M-1 reap --job " + kGreetedJob + " --node 0 --grace-ms 100");
  ASSERT_TRUE(greeting.has_value());
  EXPECT_EQ(greeting->arguments.role, AgentArguments::Role::kReap);
}

TEST(ParseGreeting, RefusesTheRest) {
  for (const std::string& line : std::vector<std::string>{
           "", "M-1", "M-1 --stdio", "M-1 reap", "--stdio --job " + kGreetedJob + " --node 7",
           "M-1 --stdio --job ../etc --node 7", "M-1 serve --listen unix:/run/a.sock",
           "PRI * HTTP/2.0", "umask 077;set -f"}) {
    EXPECT_FALSE(parse_greeting(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace hvd
