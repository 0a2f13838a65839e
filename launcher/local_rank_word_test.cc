#include "launcher/local_rank_word.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

using Words = std::vector<std::string>;

TEST(LocalRankWord, StandsBehindTheScript) {
  const std::vector<std::pair<Words, std::size_t>> cases = {
      {{"python", "train.py", "config", "--launcher", "pytorch"}, 2},
      {{"/usr/bin/python3.11", "-u", "train.py", "config"}, 3},
      {{"python3", "-W", "ignore", "-Xdev", "train.py", "-m", "x"}, 5},
      {{"python", "-m", "pkg.train", "config"}, 3},
      {{"python", "-um", "pkg.train", "config"}, 3},
      {{"python", "-c", "import sys", "config"}, 3},
      {{"python", "-", "config"}, 2},
      {{"python", "-u"}, 2},
      {{"python", "-m"}, 2},
      {{"env", "A=1", "python", "train.py", "config"}, 4},
      {{"numactl", "-N", "0", "python", "-m", "train", "x.py"}, 6},
      {{"./train.py", "config.py"}, 1},
      {{"nsys", "profile", "train.py", "config"}, 3},
      {{"bash", "run.sh", "config"}, 3},
      {{"./python-tool", "a"}, 2},
      {{"./train"}, 1},
  };
  for (const auto& [command, place] : cases) {
    EXPECT_EQ(local_rank_place(command), place) << command[0] << " " << command.back();
  }
}

}  // namespace
}  // namespace hvd
