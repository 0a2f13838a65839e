#include "launcher/show_config.h"

#include <gmock/gmock.h>

#include <sstream>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

// The words of the lines that begin with the option's name.
std::vector<std::string> line_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    if (!found.empty() && found.front() == name) return found;
  }
  return {};
}

std::string shown(const std::vector<std::string>& words, const EnvList& here = {}) {
  const auto options = parse_options(words, here);
  EXPECT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->action, Action::kShowConfig);
  return options ? show_config_text(*options) : "";
}

TEST(ShowConfig, TellsValueAndOriginAndNeedsNoCommand) {
  const std::string text = shown({"hvdrun", "--show-config", "--grace", "5", "-x", "TOKEN=hunter2",
                                  "--no-accept-new-host-keys"},
                                 {{"HVDRUN_LEASE", "20"}, {"HOROVOD_START_TIMEOUT", "30"}});
  using testing::ElementsAre;
  EXPECT_THAT(line_of(text, "--grace"), ElementsAre("--grace", "5", "command", "line"));
  EXPECT_THAT(line_of(text, "--lease"), ElementsAre("--lease", "20", "HVDRUN_LEASE"));
  EXPECT_THAT(line_of(text, "--start-timeout"),
              ElementsAre("--start-timeout", "30", "HOROVOD_START_TIMEOUT"));
  EXPECT_THAT(line_of(text, "--accept-new-host-keys"),
              ElementsAre("--accept-new-host-keys", "off", "command", "line"));
  EXPECT_THAT(line_of(text, "--fabric"), ElementsAre("--fabric", "require", "default"));
  EXPECT_THAT(line_of(text, "-x"), ElementsAre("-x", "TOKEN", "command", "line"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(ShowConfig, HasEachDocumentedOption) {
  const std::string text = shown({"hvdrun", "--show-config", "true"});
  for (const OptionSpec& option : options_table()) {
    const auto line = line_of(text, std::string(option.names.back()));
    EXPECT_EQ(line.empty(), option.is_hidden || option.is_per_run) << option.names.back();
  }
}

TEST(ShowConfig, MistakesStayMistakes) {
  EXPECT_FALSE(parse({"--show-config", "--grace", "soon"}));
}

}  // namespace
}  // namespace hvd
