#include "launcher/evidence.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

RankEvidence rank(std::uint32_t number, std::string text, const char* state = "S") {
  RankEvidence rank;
  rank.host = fmt::format("node{}", number / 2 + 1);
  rank.found.set_rank(number);
  rank.found.set_pid(static_cast<int>(4000 + number));
  rank.found.set_state(state);
  rank.found.set_text(std::move(text));
  return rank;
}

TEST(Evidence, TheKernelsViewIsShownOfRanksThatHang) {
  const std::vector<RankEvidence> all = {rank(0, "a\n"), rank(2, "b (pid 4002)\n  c\n", "T")};
  EXPECT_EQ(evidence_text(all, {.first = {2}}),
            "hvdrun: rank 2 (node2, pid 4002), stopped (T); the kernel tells of it:\n"
            "  | b (pid 4002)\n"
            "  |   c\n");
  EXPECT_THAT(evidence_text(all, {.first = {2}, .has_report = true}),
              HasSubstr("what was found of 1 rank more stands in the file of --report\n"));
}

TEST(Evidence, WithAHookAllAreShownTheBlamedOneFirst) {
  auto hung = rank(1, "partly\n");
  hung.found.set_problem("did not end within 5 s");
  auto missing = rank(3, "");
  missing.found.set_problem("could not be executed: No such file or directory");
  EXPECT_EQ(evidence_text({rank(0, "main.py:3"), hung, missing},
                          {.first = {3, 1}, .shows_others = true, .command = "py-spy"}),
            "hvdrun: rank 3 (node2, pid 4003), sleeping (S); --on-stall printed nothing: the "
            "command could not be executed: No such file or directory\n"
            "hvdrun: rank 1 (node1, pid 4001), sleeping (S); --on-stall says of it (the command "
            "did not end within 5 s):\n"
            "  | partly\n"
            "hvdrun: rank 0 (node1, pid 4000), sleeping (S); --on-stall says of it:\n"
            "  | main.py:3\n");
}

TEST(Evidence, IsBounded) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += "line\n";
  auto many = rank(0, lines);
  many.found.set_num_left_out(7);
  EXPECT_THAT(evidence_text({many}, {.first = {0}}), HasSubstr("  | (1007 bytes left out)\n"));
  std::vector<RankEvidence> all;
  for (std::uint32_t i = 0; i < 40; ++i) all.push_back(rank(i, std::string(2000, 'x') + "\n"));
  const std::string text = evidence_text(all, {.first = {5}, .shows_others = true, .command = "x"});
  EXPECT_LT(text.size(), 40000u);
  EXPECT_THAT(text, HasSubstr("what was found of 24 ranks more is not shown; --report FILE"));
  all.assign(3, rank(1, std::string(64 << 10, 'y')));
  EXPECT_LT(evidence_text(all, {.first = {1}}).size(), 200000u);
}

TEST(Evidence, NothingOfItActsOnATerminal) {
  const std::string text = evidence_text({rank(0, "\x1b]0;title\x07\n")}, {.first = {0}});
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
}

TEST(Evidence, WhereNothingWasPrintedThatIsSaid) {
  EXPECT_EQ(evidence_text({rank(0, "")}, {.first = {0}, .command = "x"}),
            "hvdrun: rank 0 (node1, pid 4000), sleeping (S); --on-stall printed nothing\n");
  EXPECT_EQ(evidence_text({rank(0, "")}, {.first = {0}}),
            "hvdrun: rank 0 (node1, pid 4000), sleeping (S); the kernel tells nothing of it\n");
}

}  // namespace
}  // namespace hvd
