#include "runtime/tcp_blame.h"

#include <gtest/gtest.h>

#include <vector>

namespace hvd {
namespace {

constexpr TcpAnswer kSilent{};
constexpr TcpAnswer waits_for(int rank) { return {true, rank}; }

struct Case {
  const char* what;
  int self;
  int awaited;
  std::vector<TcpAnswer> answers;
  int culprit;
};

TEST(FindCulprit, FollowsTheChainToTheSilentOne) {
  const std::vector<Case> cases = {
      {"the neighbour is silent", 2, 1, {waits_for(3), kSilent, {}, waits_for(2)}, 1},
      {"its neighbour's neighbour is", 3, 2, {waits_for(3), kSilent, waits_for(1), {}}, 1},
      {"all the way round", 0, 3, {{}, kSilent, waits_for(1), waits_for(2)}, 1},
      {"a silent rank outside the chain has done its part",
       3,
       2,
       {kSilent, kSilent, waits_for(1), {}},
       1},
      {"everybody waits for somebody", 0, 1, {{}, waits_for(2), waits_for(0)}, 1},
      {"a circle without this rank", 0, 1, {{}, waits_for(2), waits_for(1)}, 1},
      {"the awaited rank waits for nobody", 0, 1, {{}, waits_for(-1), kSilent}, 1},
      {"two ranks", 0, 1, {{}, kSilent}, 1},
      {"nobody is awaited", 0, -1, {{}, kSilent}, -1},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(find_culprit(c.self, c.awaited, c.answers), c.culprit) << c.what;
  }
}

}  // namespace
}  // namespace hvd
