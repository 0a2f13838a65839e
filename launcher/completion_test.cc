// What the completions for zsh and fish are made of; bash's is run in manual_test.cc.
#include <gmock/gmock.h>

#include <sstream>

#include "launcher/options.h"
#include "launcher/options_table.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Completion, ZshHasEachDocumentedNameWithItsArgument) {
  const std::string text = zsh_completion();
  EXPECT_THAT(text, testing::StartsWith("#compdef hvdrun\n"));
  for (const OptionSpec& option : options_table()) {
    for (const auto name : option.names) {
      const bool has_equals = option.takes_argument() && name.starts_with("--");
      const std::string line = fmt::format("{}{}{}[", option.repeat == Repeat::kEach ? "'*" : ")",
                                           name, has_equals ? "=" : "");
      EXPECT_EQ(text.find(line) != std::string::npos, !option.is_hidden) << line;
    }
  }
  EXPECT_THAT(text, HasSubstr(":KIND:(auto local command ssh tls)'"));
  EXPECT_THAT(text, HasSubstr("hvdrun'\\''s runtime")) << "quoted for the shell";
}

TEST(Completion, FishHasEachDocumentedNameWithItsArgument) {
  std::istringstream lines(fish_completion());
  std::size_t num_lines = 0;
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("complete -c hvdrun -n __hvdrun_has_no_command -")) ++num_lines;
    text += line + "\n";
  }
  std::size_t num_documented = 1;  // the command itself
  for (const OptionSpec& option : options_table()) {
    if (option.is_hidden) continue;
    ++num_documented;
    for (const auto name : option.names) {
      const char* kind = name.starts_with("--") ? "-l" : is_short_name(name) ? "-s" : "-o";
      EXPECT_THAT(text, HasSubstr(fmt::format(" {} {} ", kind, bare_name(name))));
    }
  }
  EXPECT_EQ(num_lines, num_documented);
  EXPECT_THAT(text, HasSubstr("-x -a 'auto local command ssh tls'"));
  EXPECT_THAT(text, HasSubstr("-l hostfile -r -F"));
  EXPECT_THAT(text, HasSubstr("hvdrun\\'s runtime"));
  EXPECT_THAT(text, Not(HasSubstr("-l heartbeat-ms")));
}

}  // namespace
}  // namespace hvd
