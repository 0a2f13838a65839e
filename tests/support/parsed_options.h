// Options of a command line, for tests of a few of them: the words stand before the command "true".
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "launcher/options.h"

namespace hvd {

[[nodiscard]] inline Result<Options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "hvdrun");
  words.emplace_back("true");
  return parse_options(words, {});
}

// The message of the usage error that this must be.
[[nodiscard]] inline std::string error_of(const std::vector<std::string>& words) {
  const auto options = parse(words);
  EXPECT_FALSE(options);
  if (options) return "";
  EXPECT_EQ(options.error().code, ExitCode::kUsage);
  return options.error().message;
}

struct UsageError {
  std::vector<std::string> words;
  const char* text;  // stands in the message
};

inline void expect_usage_errors(const std::vector<UsageError>& errors) {
  for (const UsageError& expected : errors) {
    const auto options = parse(expected.words);
    ASSERT_FALSE(options) << expected.text;
    EXPECT_EQ(options.error().code, ExitCode::kUsage);
    EXPECT_THAT(options.error().message, testing::HasSubstr(expected.text));
  }
}

}  // namespace hvd
