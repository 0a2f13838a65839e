#include "launcher/reap_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;

TEST(AgentWords, NameJobAndNode) {
  EXPECT_THAT(agent_words("ab12", 3, "", false),
              ElementsAre("--stdio", "--job", "ab12", "--node", "3"));
  EXPECT_THAT(agent_words("ab12", 3, "", true),
              ElementsAre("--stdio", "--job", "ab12", "--node", "3", "--user-scope"));
  EXPECT_THAT(agent_words("ab12", 0, "/sys/x", false),
              ElementsAre("--stdio", "--job", "ab12", "--node", "0", "--cgroup-root", "/sys/x"));
  EXPECT_THAT(agent_words("ab12", 0, "/a b;rm", false),
              ElementsAre("--stdio", "--job", "ab12", "--node", "0"))
      << "a shell would make something else of it";
}

TEST(ReapWords, AreTheAgentsWithTimeAndFolder) {
  EXPECT_THAT(
      reap_words(agent_words("ab12", 3, "none", true), std::chrono::milliseconds(1500), "/t/x"),
      ElementsAre("reap", "--job", "ab12", "--node", "3", "--cgroup-root", "none", "--grace-ms",
                  "1500", "--job-dir", "/t/x"));
  EXPECT_THAT(reap_words(agent_words("ab12", 3, "", false), Nanos(0), ""),
              ElementsAre("reap", "--job", "ab12", "--node", "3", "--grace-ms", "0"));
}

TEST(ParseReapAnswer, FindsTheLineAmongOthers) {
  const auto end = parse_reap_answer(
      "welcome\n{\"job\":\"other\",\"node\":1,\"clean\":false}\n"
      "{\"job\":\"ab\",\"node\":1,\"clean\":true,\"killed\":4,\"survivors\":[]}\n",
      "ab", 1);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->clean());
  EXPECT_EQ(end->num_killed(), 4U);
  EXPECT_EQ(end->survivors_size(), 0);
}

TEST(ParseReapAnswer, TakesSurvivors) {
  const auto end = parse_reap_answer(
      R"({"job":"ab","node":1,"clean":false,"killed":0,"survivors":[{"pid":42,"uid":1000,)"
      R"("state":"D","wchan":"nfs_wait","command":"x y","ports":[8080]},7]})",
      "ab", 1);
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->clean());
  ASSERT_EQ(end->survivors_size(), 1);
  EXPECT_EQ(end->survivors(0).pid(), 42);
  EXPECT_EQ(end->survivors(0).uid(), 1000U);
  EXPECT_EQ(end->survivors(0).state(), "D");
  EXPECT_EQ(end->survivors(0).wchan(), "nfs_wait");
  EXPECT_EQ(end->survivors(0).command(), "x y");
  EXPECT_THAT(end->survivors(0).listening_ports(), ElementsAre(8080U));
}

TEST(ParseReapAnswer, ADoubtIsAnErrorUnlessThereAreSurvivors) {
  const auto doubted = parse_reap_answer(
      R"({"job":"ab","node":1,"clean":false,"doubt":"no proof","survivors":[]})", "ab", 1);
  ASSERT_FALSE(doubted.has_value());
  EXPECT_EQ(doubted.error().message, "no proof");
  EXPECT_TRUE(parse_reap_answer(
      R"({"job":"ab","node":1,"clean":false,"doubt":"no proof","survivors":[{"pid":4}]})", "ab",
      1));
}

TEST(ParseReapAnswer, WhatIsNoAnswerIsAnError) {
  for (const char* output : {"", "\n", "{}", "{\"job\":\"ab\"}", "{\"job\":\"ab\",\"node\":2}",
                             "{\"job\":\"ab\",\"node\":\"1\"}", "[1]", "{\"job\":7,\"node\":1}"}) {
    EXPECT_FALSE(parse_reap_answer(output, "ab", 1).has_value()) << output;
  }
  const auto odd =
      parse_reap_answer(R"({"job":"ab","node":1,"clean":"yes","survivors":3})", "ab", 1);
  ASSERT_TRUE(odd.has_value());
  EXPECT_FALSE(odd->clean());
}

}  // namespace
}  // namespace hvd
