// The texts that are made from the option table: help, man page, completion, dry run, check build.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "launcher/check_build.h"
#include "launcher/dry_run.h"
#include "launcher/options.h"
#include "launcher/options_table.h"
#include "launcher/setting_names.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Help, FitsTheTerminal) {
  for (const int columns : {80, 100, 132}) {
    for (const std::string& line : lines_of(help_text(columns))) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(columns)) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
  }
  EXPECT_FALSE(help_text(0).empty());
  EXPECT_FALSE(help_text(-1).empty());
}

TEST(Help, ShowsEveryDocumentedOptionAndNoHiddenOne) {
  const std::string help = help_text(80);
  for (const OptionSpec& option : options_table()) {
    if (option.is_hidden) {
      EXPECT_THAT(help, Not(HasSubstr(std::string(option.names.front()))));
    } else {
      EXPECT_THAT(help, HasSubstr("  " + option_heading(option)));
      EXPECT_THAT(help, HasSubstr(std::string(group_title(option.group)) + ":\n"));
    }
    if (!option.opposite.empty()) {
      EXPECT_THAT(help, Not(HasSubstr(std::string(option.opposite) + " ")));
      EXPECT_THAT(help, Not(HasSubstr(std::string(option.opposite) + "\n")));
    }
  }
}

std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '-' ? std::string("\\-") : std::string(1, c);
  return result;
}

TEST(ManPage, DocumentsEveryOptionAndVariable) {
  const std::string page = man_page();
  for (const OptionSpec& option : options_table()) {
    for (const auto name : option.names) {
      const auto bold = "\\fB" + roff(name) + "\\fR";
      EXPECT_EQ(page.find(bold) != std::string::npos, !option.is_hidden) << name;
    }
    for (const auto variable : option.variables) {
      EXPECT_THAT(page, HasSubstr(std::string(variable)));
    }
    EXPECT_THAT(page, HasSubstr(variable_of(option)));
  }
}

TEST(ManPage, HasItsSectionsAndNoStrayRequests) {
  std::vector<std::string> sections;
  for (const std::string& line : lines_of(man_page())) {
    if (line.rfind(".SH ", 0) == 0) sections.push_back(line.substr(4));
    if (line.empty() || line[0] == '\'') ADD_FAILURE() << "line groff would misread: " << line;
    if (line[0] != '.') continue;
    EXPECT_THAT(line.substr(0, 3), testing::AnyOf(".TH", ".SH", ".SS", ".PP", ".TP", ".br"));
  }
  EXPECT_THAT(sections, ElementsAre("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS",
                                    "FILES", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"));
}

// What bash offers for the last word of the line, one a line, sorted.
// `words` as bash cuts them; `line` as it was typed.
std::vector<std::string> complete(const std::vector<std::string>& words, const std::string& line) {
  const std::string script = fmt::format(
      "{}\nCOMP_WORDS=({}); COMP_CWORD={}; COMP_LINE={}; COMP_POINT=${{#COMP_LINE}}; _hvdrun; "
      "printf '%s\\n' \"${{COMPREPLY[@]}}\" | sort",
      bash_completion(), quote_words(words), words.size() - 1, quote_word(line));
  // By a variable: popen's own shell need not know all of bash's quoting.
  ::setenv("COMPLETION_SCRIPT", script.c_str(), 1);
  FILE* pipe = ::popen("exec bash --norc -c 'eval \"$COMPLETION_SCRIPT\"'", "r");
  if (pipe == nullptr) return {"popen failed"};
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    text.push_back(static_cast<char>(c));
  }
  EXPECT_EQ(::pclose(pipe), 0);
  return lines_of(text);
}

std::vector<std::string> complete(const std::vector<std::string>& words) {
  return complete(words, fmt::format("{}", fmt::join(words, " ")));
}

TEST(Completion, KnowsThatBashCutsWordsAtEqualsSignsAndColons) {
  EXPECT_THAT(complete({"hvdrun", "--num-proc", "=", "4", "--ra"}, "hvdrun --num-proc=4 --ra"),
              ElementsAre("--rank-order"));
  EXPECT_THAT(
      complete({"hvdrun", "-H", "a", ":", "2,b", ":", "2", "--ra"}, "hvdrun -H a:2,b:2 --ra"),
      ElementsAre("--rank-order"));
  EXPECT_THAT(complete({"hvdrun", "--rank-order", "=", "c"}, "hvdrun --rank-order=c"),
              ElementsAre("cyclic"));
  EXPECT_THAT(complete({"hvdrun", "--hostfile", "=", "/etc/pass"}, "hvdrun --hostfile=/etc/pass"),
              testing::Contains("/etc/passwd"));
}

TEST(Completion, OffersOptionsAndChoicesInBash) {
  EXPECT_THAT(complete({"hvdrun", "--host"}),
              ElementsAre("--host-discovery-script", "--hostfile", "--hosts"));
  EXPECT_THAT(complete({"hvdrun", "-np", "4", "--ver"}), ElementsAre("--verbose", "--version"));
  EXPECT_THAT(complete({"hvdrun", "--transport", ""}),
              ElementsAre("auto", "command", "local", "ssh", "tls"));
  EXPECT_THAT(complete({"hvdrun", "-fabric", "s"}), ElementsAre("skip"));
  EXPECT_THAT(complete({"hvdrun", "-i", "/etc/pass"}), testing::Contains("/etc/passwd"));
  EXPECT_THAT(complete({"hvdrun", "-H", "/etc/pass"}), ElementsAre(""));
}

TEST(Completion, LeavesTheCommandsOwnWordsAlone) {
  EXPECT_THAT(complete({"hvdrun", "python", "--ver"}), Not(testing::Contains("--version")));
  EXPECT_THAT(complete({"hvdrun", "--", "cat", "/etc/pass"}), testing::Contains("/etc/passwd"));
  EXPECT_THAT(complete({"hvdrun", "bas"}), testing::Contains("bash"));
}

std::string dry_run(std::vector<std::string> words) {
  words.insert(words.begin(), "hvdrun");
  const EnvList here = {{"HOME", "/root"}, {"TOKEN", "hunter2"}};
  const auto options = parse_options(words, here);
  if (!options) return "error: " + options.error().message;
  const auto text = dry_run_text(*options, here, "/data/my job");
  return text ? *text : "error: " + text.error().message;
}

TEST(DryRun, ShowsRanksInOrder) {
  const auto lines = lines_of(dry_run(
      {"-H", "localhost:1,me@node2:2", "-np", "2", "-x", "TOKEN", "python", "a b", "-np", "9"}));
  ASSERT_GE(lines.size(), 9U);
  EXPECT_EQ(lines[0], "rank  host       local rank  transport");
  EXPECT_EQ(lines[1], "   0  localhost           0  local");
  EXPECT_EQ(lines[2], "   1  me@node2            0  ssh");
  EXPECT_EQ(lines[3], "note: -np 2 of 3 slots: localhost x1, node2 x1");
  EXPECT_EQ(lines[5], "each runs: python 'a b' -np 9");
  EXPECT_EQ(lines[6], "in: '/data/my job'");
  EXPECT_THAT(lines[7], HasSubstr("1 of the 2 variables set here; given TOKEN; "));
  EXPECT_EQ(lines.back(), "Dry run: nothing was contacted, nothing was started.");
}

TEST(DryRun, ShowsOrderAndGpusWhereTheyAreGiven) {
  const auto lines = lines_of(dry_run({"-H", "n1:4,6,n2:2", "--rank-order", "cyclic", "true"}));
  ASSERT_GE(lines.size(), 5U);
  EXPECT_EQ(lines[0], "rank  host  local rank  transport  GPUs");
  EXPECT_EQ(lines[1], "   0  n1             0  ssh        4,6");
  EXPECT_EQ(lines[2], "   1  n2             0  ssh");
  EXPECT_EQ(lines[3], "   2  n1             1  ssh        4,6");
  const auto one_each = lines_of(dry_run({"-H", "n1:4,6,n2:1", "--one-gpu-per-rank", "true"}));
  ASSERT_GE(one_each.size(), 4U);
  EXPECT_EQ(one_each[2], "   1  n1             1  ssh        6");
  EXPECT_EQ(one_each[3], "   2  n2             0  ssh        0 of the node");
}

TEST(DryRun, ShowsUnknownSlotsAsGpusAndNoValues) {
  const auto text = dry_run({"-H", "node1:1,node2,node3:1", "-x", "TOKEN", "true"});
  const auto lines = lines_of(text);
  ASSERT_GE(lines.size(), 5U);
  EXPECT_EQ(lines[1], "   0  node1           0  ssh");
  EXPECT_EQ(lines[2], "1...  node2     0..GPUs  ssh");
  EXPECT_EQ(lines[3], "   ?  node3           0  ssh");
  EXPECT_THAT(lines[4], HasSubstr("GPUs: as many as the host has"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(DryRun, FailsAsTheRunWould) {
  EXPECT_THAT(dry_run({"-np", "5", "-H", "node1:2,node2:2", "true"}),
              HasSubstr("error: -np 5 is more than the 4 slots of -H node1:2,node2:2"));
}

TEST(CheckBuild, HasHorovodrunsListsAndMarksWhatIsThere) {
  EXPECT_EQ(check_build_text({.version = "1.2.3", .has_ssh = true, .has_tcp = true}),
            "hvdrun v1.2.3:\n"
            "\nAvailable Frameworks:\n"
            "    [X] TensorFlow\n"
            "    [X] PyTorch\n"
            "    [X] MXNet\n"
            "\nAvailable Controllers:\n"
            "    [ ] MPI\n"
            "    [X] Gloo\n"
            "\nAvailable Tensor Operations:\n"
            "    [X] NCCL\n"
            "    [ ] DDL\n"
            "    [ ] CCL\n"
            "    [ ] MPI\n"
            "    [X] Gloo\n"
            "\nThe lists above are what programs that hvdrun starts may use; they bring it along.\n"
            "This is hvdrun's own:\n"
            "\nAvailable Transports:\n"
            "    [X] local\n"
            "    [X] command\n"
            "    [X] ssh\n"
            "\nAvailable in the Runtime:\n"
            "    [ ] NCCL\n"
            "    [X] TCP\n"
            "\nAvailable Programs:\n"
            "    [ ] PETRv2 trainer (libtorch)\n");
  EXPECT_THAT(check_build_text({.version = "1"}), HasSubstr("    [ ] ssh\n"));
}

}  // namespace
}  // namespace hvd
