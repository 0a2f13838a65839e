#include "agent/pmi_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

std::vector<std::string> names_in(PmiLines& lines, std::string_view bytes) {
  lines.append(bytes);
  std::vector<std::string> names;
  while (const auto command = lines.next()) names.push_back(command->name);
  return names;
}

TEST(PmiLine, IsSplitIntoWords) {
  const PmiCommand put = parse_pmi_line("cmd=put kvsname=kvs_1 key=a-b value=x=y,(1)");
  EXPECT_EQ(put.name, "put");
  EXPECT_EQ(put.find("kvsname"), "kvs_1");
  EXPECT_EQ(put.find("key"), "a-b");
  EXPECT_EQ(put.find("value"), "x=y,(1)");
  EXPECT_EQ(put.find("other"), std::nullopt);
}

TEST(PmiLine, WithoutACommandHasNoName) {
  for (const char* line :
       {"", " ", "=", "put", "=put", "key=value", "cmd= key=value", "\xff\x01"}) {
    EXPECT_EQ(parse_pmi_line(line).name, "") << line;
  }
}

TEST(PmiLine, TheFirstCommandCountsAndEmptyWordsDoNot) {
  const PmiCommand command = parse_pmi_line("  cmd=get  key=  cmd=put ");
  EXPECT_EQ(command.name, "get");
  EXPECT_EQ(command.find("key"), "");
}

TEST(PmiLines, ComeInAnyPieces) {
  PmiLines lines;
  EXPECT_EQ(names_in(lines, "cmd=in"), std::vector<std::string>{});
  EXPECT_EQ(names_in(lines, "it pmi_version=1\ncmd=get_maxes\ncmd"),
            (std::vector<std::string>{"init", "get_maxes"}));
  EXPECT_EQ(names_in(lines, "=finalize\n"), std::vector<std::string>{"finalize"});
}

TEST(PmiLines, ASpawnIsOneCommandUpToItsEnd) {
  PmiLines lines;
  EXPECT_TRUE(names_in(lines, "mcmd=spawn\nnprocs=2\nexecname=a b\ntotspawns=1\n").empty());
  lines.append("endcmd\ncmd=finalize\n");
  const auto spawn = lines.next();
  ASSERT_TRUE(spawn);
  EXPECT_EQ(spawn->name, "spawn");
  EXPECT_EQ(spawn->find("nprocs"), "2");
  EXPECT_EQ(spawn->find("totspawns"), "1");
  EXPECT_EQ(lines.next()->name, "finalize");
}

TEST(PmiLines, TheLongestLineIsTakenAndALongerOneBreaks) {
  PmiLines lines;
  const std::string head = "cmd=";
  EXPECT_EQ(
      names_in(lines, head + std::string(PmiLines::kMaxLine - head.size(), 'x') + "\n").size(), 1U);
  EXPECT_FALSE(lines.is_broken());
  EXPECT_TRUE(names_in(lines, std::string(PmiLines::kMaxLine + 1, 'x')).empty());
  EXPECT_TRUE(lines.is_broken());
  EXPECT_TRUE(names_in(lines, "\ncmd=init pmi_version=1\n").empty()) << "it stays broken";
}

TEST(PmiLines, AWholeLineBeyondTheLimitBreaksToo) {
  PmiLines lines;
  EXPECT_TRUE(names_in(lines, std::string(PmiLines::kMaxLine + 1, 'x') + "\n").empty());
  EXPECT_TRUE(lines.is_broken());
}

TEST(PmiLines, ASpawnWithoutAnEndBreaks) {
  PmiLines lines;
  lines.append("mcmd=spawn\n");
  for (std::size_t i = 0; i <= PmiLines::kMaxSpawnWords; ++i) {
    EXPECT_TRUE(names_in(lines, "arg=x\n").empty());
  }
  EXPECT_TRUE(lines.is_broken());
}

}  // namespace
}  // namespace hvd
