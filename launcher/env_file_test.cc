#include "launcher/env_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct ReadFile {
  Result<EnvList> variables;
  std::vector<std::string> notes;
};

ReadFile read_text(std::string_view text, const EnvList& own = {}) {
  ReadFile parsed;
  parsed.variables = parse_env_file(text, "run.env", own, parsed.notes);
  return parsed;
}

EnvList variables_of(std::string_view text, const EnvList& own = {}) {
  auto parsed = read_text(text, own);
  EXPECT_TRUE(parsed.variables) << parsed.variables.error().message;
  return parsed.variables.value_or(EnvList{});
}

TEST(EnvFile, ValuesAreWhatTheQuotesSay) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"A=b", "b"},
      {"A=", ""},
      {"A=x=y", "x=y"},
      {"  export A = b \t", "b"},
      {"exportA=1", ""},  // another name, judged below
      {"A=b c", "b c"},
      {"A=b # comment", "b"},
      {"A=b#no comment", "b#no comment"},
      {"A=#b", "#b"},
      {"A= # nothing", ""},
      {"A='b # c'", "b # c"},
      {"A='b' # comment", "b"},
      {R"(A='\n$B"')", R"(\n$B")"},
      {R"(A="b\n\"c\"\\ \$B \x")", "b\n\"c\"\\ $B \\x"},
      {"A=\"two\nlines\"", "two\nlines"},
      {"A='two\nlines'", "two\nlines"},
      {R"(A=C:\new)", R"(C:\new)"},
      {"A=it's", "it's"},
      {"A=\xff\xfe", "\xff\xfe"},
      {"A=b\r\n", "b"},
      {"\xef\xbb\xbf"
       "A=b",
       "b"},
      {"A=''", ""},
  };
  for (const auto& [text, value] : cases) {
    const EnvList variables = variables_of(text);
    ASSERT_EQ(variables.size(), 1U) << text;
    if (variables[0].first == "exportA") continue;
    EXPECT_EQ(variables[0].first, "A") << text;
    EXPECT_EQ(variables[0].second, value) << text;
  }
}

TEST(EnvFile, LinesOfManyKinds) {
  EXPECT_EQ(variables_of("# first\n\n  # indented\nA=1\r\nB=\"x\ny\"\nA=2\n#end"),
            (EnvList{{"A", "1"}, {"B", "x\ny"}, {"A", "2"}}));
  EXPECT_THAT(variables_of(""), IsEmpty());
  EXPECT_THAT(variables_of("\n\n"), IsEmpty());
}

TEST(EnvFile, NameAloneTakesHvdrunsOwnValue) {
  EXPECT_EQ(variables_of("TOKEN\nexport B # own", {{"TOKEN", "t\n"}, {"B", ""}}),
            (EnvList{{"TOKEN", "t\n"}, {"B", ""}}));
  const auto parsed = read_text("A=1\nUNSET\n");
  EXPECT_EQ(parsed.variables.value(), (EnvList{{"A", "1"}}));
  EXPECT_THAT(parsed.notes, ElementsAre(HasSubstr("run.env:2")));
}

TEST(EnvFile, ErrorsNameTheLineAndShowNoValue) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"A=1\nsecret/line+of/a+key\n", "run.env:2"},
      {"=secret", "run.env:1"},
      {"1A=secret", "run.env:1"},
      {"A-B=secret", "run.env:1"},
      {"A='1'\n\nB='secret\nmore\n", "run.env:3"},
      {"A=\"x\ny\"\nB=\"secret", "run.env:3"},
      {"A='x' secret", "run.env:1"},
      {std::string_view("A=sec\0ret", 9), "run.env:1"},
  };
  for (const auto& [text, place] : cases) {
    const auto parsed = read_text(text);
    ASSERT_FALSE(parsed.variables) << text;
    EXPECT_EQ(parsed.variables.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.variables.error().message, HasSubstr(std::string(place) + ": "));
    EXPECT_THAT(parsed.variables.error().message, Not(HasSubstr("sec"))) << text;
  }
}

TEST(EnvFile, NothingIsExpandedAndWhoExpectsItIsTold) {
  const auto parsed = read_text("A=1\nL=/opt/x:$L\nP=\"/p:${P}\"\nQ='$Q'\nR=$RR:$S\n");
  EXPECT_EQ(parsed.variables->at(1).second, "/opt/x:$L");
  EXPECT_EQ(parsed.variables->at(2).second, "/p:${P}");
  EXPECT_THAT(parsed.notes, ElementsAre(HasSubstr("run.env:2: $L"), HasSubstr("run.env:3: $P")));
}

}  // namespace
}  // namespace hvd
