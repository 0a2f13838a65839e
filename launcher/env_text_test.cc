#include "launcher/env_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/env_size.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(EnvText, SecretsAreKnownByTheirNames) {
  for (const char* name : {"WANDB_API_KEY", "HF_TOKEN", "hf_token", "AWS_SECRET_ACCESS_ID",
                           "DB_PASSWORD", "PASSWD", "GOOGLE_APPLICATION_CREDENTIALS", "BASIC_AUTH",
                           "SESSION_COOKIE", "GPG_PASSPHRASE", "PRIVATE_PEM"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name : {"PATH", "NCCL_DEBUG", "HOME", "PWD", "CUDA_VISIBLE_DEVICES"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST(EnvText, HidesSecretsAndCutsLongValues) {
  EXPECT_EQ(shown_variable("A", "b c"), "A='b c'");
  EXPECT_EQ(shown_variable("API_KEY", "s3cret"), "API_KEY=(hidden)");
  EXPECT_EQ(shown_variable("http_proxy", "http://me:s3cret@proxy:3128/"), "http_proxy=(hidden)");
  EXPECT_EQ(shown_variable("http_proxy", "http://proxy:3128/a@b:c"),
            "http_proxy=http://proxy:3128/a@b:c");
  const std::string shown = shown_variable("LONG", std::string(1000, 'x'));
  EXPECT_LT(shown.size(), 120U);
  EXPECT_THAT(shown, HasSubstr("1000 bytes"));
}

TEST(EnvText, LinesNameWhatTravelsAndShowNoValueOfIt) {
  const auto lines = environment_lines({{"HOME", "/h"}, {"A", "s3cret"}}, {},
                                       {{"B", "shown"}, {"B_TOKEN", "s3cret"}});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("from hvdrun to the nodes (1 variable): A"));
  EXPECT_THAT(lines[1], HasSubstr("HOME"));
  EXPECT_THAT(lines[2], HasSubstr("B=shown B_TOKEN=(hidden)"));
  for (const auto& line : lines) EXPECT_THAT(line, Not(HasSubstr("s3cret")));
}

TEST(EnvSize, OneStringAndAllTogetherHaveLimits) {
  const std::vector<std::string> command = {"true"};
  const EnvList most = {{"A", std::string(kMostStringBytes - 3, 'x')}};
  EXPECT_TRUE(check_exec_size(command, most));
  EnvList more = most;
  more[0].second += 'x';
  const auto refused = check_exec_size(command, more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("the variable A takes 128.0 KiB"));
  more.emplace_back("A", "short");  // a later line wins
  EXPECT_TRUE(check_exec_size(command, more));
  EXPECT_THAT(check_exec_size({"a", std::string(kMostStringBytes, 'x')}, {}).error().message,
              HasSubstr("word 2 of COMMAND"));
}

TEST(EnvSize, TheLargestAreNamedWithTheRemedy) {
  EnvList many;
  for (int i = 0; i < 50; ++i) {
    many.emplace_back("V" + std::to_string(i), std::string(static_cast<std::size_t>(i) * 100, 'x'));
  }
  EXPECT_TRUE(check_exec_size({"true"}, many, 200000));
  const auto refused = check_exec_size({"true"}, many, 100000, "node1: ");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("node1: COMMAND"));
  EXPECT_THAT(refused.error().message, HasSubstr("the largest: V49 4.8 KiB, V48 4.7 KiB, V47"));
  EXPECT_THAT(refused.error().message, HasSubstr("--env-deny"));
  EXPECT_THAT(refused.error().message, HasSubstr("ulimit -s"));
}

TEST(EnvSize, LimitIsAQuarterOfTheStackWithinBounds) {
  EXPECT_EQ(exec_limit(8U << 20U), 2U << 20U);
  EXPECT_EQ(exec_limit(UINT64_MAX), kMostExecBytes);
  EXPECT_EQ(exec_limit(1000), kMostStringBytes);
}

}  // namespace
}  // namespace hvd
