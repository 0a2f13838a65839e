#include "launcher/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "launcher/duration.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(ShellWords, SplitsByQuotesAndBlanks) {
  const std::vector<std::pair<std::string, Words>> cases = {
      {"", {}},
      {"  \t ", {}},
      {"ssh {host}", {"ssh", "{host}"}},
      {"  a \t b\n", {"a", "b"}},
      {"'a b' \"c d\"", {"a b", "c d"}},
      {"a'b c'd", {"ab cd"}},
      {"'' \"\"", {"", ""}},
      {"\"it's\" '\"q\"'", {"it's", "\"q\""}},
      {R"(a\ b \' \\)", {"a b", "'", "\\"}},
      {R"("a\"b" "a\\b" "a\nb")", {"a\"b", "a\\b", "a\\nb"}},
      {R"('a\b')", {"a\\b"}},
      {"$HOME * ; | #", {"$HOME", "*", ";", "|", "#"}},
  };
  for (const auto& [text, expected] : cases) {
    const auto words = split_words(text);
    ASSERT_TRUE(words) << text;
    EXPECT_EQ(*words, expected) << text;
  }
}

TEST(ShellWords, UnbalancedQuotesAreErrors) {
  EXPECT_THAT(split_words("a 'b").error().message, HasSubstr("single quote is not closed"));
  EXPECT_THAT(split_words("a \"b").error().message, HasSubstr("double quote is not closed"));
  EXPECT_THAT(split_words("a \\").error().message, HasSubstr("backslash stands at the end"));
  EXPECT_THAT(split_words("\"a\\").error().message, HasSubstr("backslash stands at the end"));
}

std::string output_of_bash(const std::string& script) {
  FILE* pipe = ::popen(("exec bash -c " + quote_word(script)).c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    text.push_back(static_cast<char>(c));
  }
  EXPECT_EQ(::pclose(pipe), 0);
  return text;
}

TEST(ShellWords, QuotedWordsArriveInBashAsTheyWere) {
  const Words words = {"plain", "a b", "it's", "\"q\" -4C", "$HOME", "*",    "",
                       "--x=a", "\\",  "é",    "-np",       "~",     "`id`", "a;b"};
  std::string expected;
  for (const std::string& word : words) expected += word + "|";
  EXPECT_EQ(output_of_bash("printf '%s|' " + quote_words(words)), expected);
  EXPECT_EQ(quote_words(words), R"(plain 'a b' 'it'\''s' '"q" -4C' '$HOME' '*' '' --x=a '\' 'é' )"
                                R"(-np '~' '`id`' 'a;b')");
}

TEST(ShellWords, ControlBytesAreShownNotSent) {
  const std::string word =
      "n\nl\t\x1b[31m'\\\x01"
      "7";
  const std::string quoted = quote_word(word);
  EXPECT_EQ(quoted, R"($'n\nl\t\033[31m\'\\\0017')");
  EXPECT_EQ(output_of_bash("eval " + quote_word("printf %s " + quoted)), word);
  EXPECT_EQ(show("a\x1b\n"), "\"a\\x1b\\x0a\"");
  EXPECT_LT(show(std::string(5000, 'a')).size(), 250U);
}

TEST(Duration, AcceptsUnitsAndFractions) {
  const std::vector<std::pair<std::string, nanoseconds>> cases = {
      {"10", seconds(10)},   {"10s", seconds(10)},       {"1.5m", seconds(90)},
      {"2h", seconds(7200)}, {"0.5", milliseconds(500)}, {".5", milliseconds(500)},
      {"5.", seconds(5)},    {"0.001", milliseconds(1)},
  };
  for (const auto& [text, expected] : cases) {
    const auto duration = parse_duration(text, "--timeout");
    ASSERT_TRUE(duration) << text;
    EXPECT_EQ(*duration, expected) << text;
  }
}

TEST(Duration, RejectsWhatIsNoTimeOrAbsurd) {
  for (const char* text : {"", "-1", "+1", "nan", "inf", "s", "1e3", "10 s", "10x", "1d", "1.2.3",
                           "0x10", ".", " 1", "1,5"}) {
    const auto duration = parse_duration(text, "--timeout");
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().code, ExitCode::kUsage);
    EXPECT_THAT(duration.error().message, HasSubstr("is no duration")) << text;
  }
  for (const char* text : {"0", "8761h", "99999999999999999999999h", "0.0001"}) {
    const auto duration = parse_duration(text, "--timeout");
    ASSERT_FALSE(duration) << text;
    EXPECT_THAT(duration.error().message, HasSubstr("is out of range")) << text;
  }
  EXPECT_TRUE(parse_duration("0", "--grace", {nanoseconds(0), seconds(3600)}));
  EXPECT_TRUE(parse_duration("1h", "--grace", {nanoseconds(0), seconds(3600)}));
}

}  // namespace
}  // namespace hvd
