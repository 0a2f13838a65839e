#include "agent/front_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kId(32, 'a');
const std::string kKey(64, 'b');

TEST(FrontLine, AJobSaysAllThatIsAskedBeforeIt) {
  const auto line = parse_front_line(
      "M-1 job --job " + kId +
      " --node 3 --cgroup-root /a --user-scope --gpus 0,2 --user build --key " + kKey);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->kind, FrontLine::Kind::kJob);
  EXPECT_EQ(line->marker, "M-1");
  EXPECT_EQ(line->job_id, kId);
  EXPECT_EQ(line->node, 3);
  EXPECT_EQ(line->key, kKey);
  EXPECT_EQ(line->user, "build");
  EXPECT_EQ(to_text(line->gpus), "0,2");
  EXPECT_THAT(line->words, ElementsAre("--cgroup-root", "/a"));
}

TEST(FrontLine, AReapIsPassedWhatConcernsIt) {
  const auto line = parse_front_line("M reap --job " + kId +
                                     " --node 0 --cgroup-root none --grace-ms 10 --job-dir /etc");
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->kind, FrontLine::Kind::kReap);
  EXPECT_THAT(line->words, ElementsAre("--grace-ms", "10", "--job-dir", "/etc"));
}

TEST(FrontLine, AQuestionIsItsWords) {
  const auto line = parse_front_line("M ctl drain new --job disks");
  ASSERT_TRUE(line);
  EXPECT_THAT(line->words, ElementsAre("drain", "new", "--job", "disks"));
  EXPECT_TRUE(is_control_line("M ctl status"));
  EXPECT_FALSE(is_control_line("M --stdio ctl"));
  EXPECT_FALSE(is_control_line("ctl"));
}

TEST(FrontLine, WhatIsWrongIsSaid) {
  const std::string job = " --job " + kId + " --node 0";
  const std::pair<std::string, const char*> cases[] = {
      {"", "does not know the greeting"},
      {"M", "does not know the greeting"},
      {"M --stdio" + job, "does not know the greeting"},
      {"M/.. job" + job + " --key " + kKey, "does not know the greeting"},
      {"M job --key " + kKey, "no job is named"},
      {"M job" + job, "the job's key is missing"},
      {"M resume" + job, "the job's key is missing"},
      {"M job" + job + " --key " + kKey.substr(1), "the key has 64"},
      {"M job --job ../../etc --node 0 --key " + kKey, "32 hexadecimal digits"},
      {"M job --job " + kId + " --node -1 --key " + kKey, "--node is a number"},
      {"M job" + job + " --gpus 0-3 --key " + kKey, "--gpus is all"},
      {"M job" + job + " --user ../x --key " + kKey, "--user is a name"},
      {"M job" + job + " --listen unix:/x --key " + kKey, "--listen is not known here"},
      {"M job" + job + " --config /x --key " + kKey, "--config is not known here"},
      {"M resume" + job + " --cgroup-root /x --key " + kKey, "--cgroup-root is not known here"},
      {"M job --job", "--job: its value is missing"},
      {"M ctl", "ctl what?"},
  };
  for (const auto& [text, why] : cases) {
    const auto line = parse_front_line(text);
    ASSERT_FALSE(line) << text;
    EXPECT_THAT(line.error().message, HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace hvd
