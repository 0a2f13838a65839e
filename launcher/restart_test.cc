#include "launcher/restart.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

AttemptEnd failed_on(const std::string& label, std::vector<HostSpec> hosts,
                     std::uint32_t num_ranks) {
  return {.is_retryable = true,
          .hosts = std::move(hosts),
          .num_ranks = num_ranks,
          .failed = {label},
          .sentence = "rank 1 failed"};
}

std::vector<HostSpec> hosts_of(std::initializer_list<const char*> names, std::uint32_t slots) {
  std::vector<HostSpec> hosts;
  for (const char* name : names) hosts.push_back({.name = name, .slots = slots});
  return hosts;
}

std::vector<std::string> names_of(const std::vector<HostSpec>& hosts) {
  std::vector<std::string> names;
  for (const HostSpec& host : hosts) names.push_back(host.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Restarts, AreOffUnlessAskedFor) {
  Restarts restarts({});
  EXPECT_FALSE(restarts.after(failed_on("a", hosts_of({"a"}, 1), 1)).is_on);
}

TEST(Restarts, AreCountedAndPauseLongerEachTime) {
  Restarts restarts({.most = 3});
  const AttemptEnd end = failed_on("a", hosts_of({"a"}, 2), 2);
  for (const int pause : {1, 2, 4}) {
    const auto next = restarts.after(end);
    ASSERT_TRUE(next.is_on);
    EXPECT_EQ(next.pause, seconds(pause));
  }
  const auto last = restarts.after(end);
  EXPECT_FALSE(last.is_on);
  EXPECT_THAT(last.told, HasSubstr("there were 3 already"));
}

TEST(Restarts, AHostThatFailedTwiceGivesItsPlaceToASpare) {
  Restarts restarts({.most = 5, .spares = {{.name = "s"}}});
  const auto hosts = hosts_of({"a", "b"}, 2);
  EXPECT_EQ(names_of(restarts.after(failed_on("a", hosts, 4)).hosts), (Names{"a", "b"}));
  const auto next = restarts.after(failed_on("a", hosts, 4));
  EXPECT_EQ(names_of(next.hosts), (Names{"s", "b"}));
  EXPECT_EQ(next.hosts.front().slots, 2U);
  EXPECT_THAT(next.told, HasSubstr("restart 2 of 5 without a"));
}

TEST(Restarts, ASpareWithTooFewSlotsIsPassedOver) {
  Restarts restarts(
      {.most = 5, .spares = {{.name = "small", .slots = 1}, {.name = "s", .slots = 2}}});
  const auto hosts = hosts_of({"a", "b"}, 2);
  static_cast<void>(restarts.after(failed_on("a", hosts, 4)));
  const auto next = restarts.after(failed_on("a", hosts, 4));
  EXPECT_EQ(names_of(next.hosts), (Names{"s", "b"}));
  // The other one is still there for where it suffices.
  const auto others = hosts_of({"s", "b"}, 2);
  static_cast<void>(restarts.after(failed_on("b", others, 3)));
  EXPECT_EQ(names_of(restarts.after(failed_on("b", others, 3)).hosts), (Names{"s", "small"}));
}

TEST(Restarts, OrToTheOtherHostsIfTheyHaveRoom) {
  Restarts restarts({.most = 5});
  const auto hosts = hosts_of({"a", "b"}, 4);
  static_cast<void>(restarts.after(failed_on("a", hosts, 4)));
  EXPECT_EQ(names_of(restarts.after(failed_on("a", hosts, 4)).hosts), Names{"b"});
}

TEST(Restarts, AndStaysWhereNothingCanTakeItsPlace) {
  Restarts restarts({.most = 5});
  const auto hosts = hosts_of({"a", "b"}, 2);
  static_cast<void>(restarts.after(failed_on("a", hosts, 4)));
  EXPECT_EQ(names_of(restarts.after(failed_on("a", hosts, 4)).hosts), (Names{"a", "b"}));
}

TEST(Restarts, AHostThatMayStillRunRanksIsNeverUsedAgain) {
  AttemptEnd end = failed_on("b", hosts_of({"a", "b"}, 2), 4);
  end.unverified = {"b"};
  Restarts with_spare({.most = 1, .spares = {{.name = "s", .slots = 2}}});
  EXPECT_EQ(names_of(with_spare.after(end).hosts), (Names{"a", "s"}));
  Restarts without_spare({.most = 1});
  const auto next = without_spare.after(end);
  EXPECT_FALSE(next.is_on);
  EXPECT_THAT(next.told, HasSubstr("b may still run ranks"));
}

Cause cause_of_kind(CauseKind kind, int value = 0) {
  Cause cause;
  cause.kind = kind;
  cause.value = value;
  return cause;
}

TEST(IsRetryable, RanksAndNodesAreAndWishesAreNot) {
  EXPECT_TRUE(is_retryable(cause_of_kind(CauseKind::kExited, 3), false, false));
  EXPECT_TRUE(is_retryable(cause_of_kind(CauseKind::kSignalled, 9), false, false));
  EXPECT_TRUE(is_retryable(cause_of_kind(CauseKind::kNodeLost), false, false));
  EXPECT_FALSE(is_retryable(cause_of_kind(CauseKind::kUserSignal, 2), true, false));
  EXPECT_FALSE(is_retryable(cause_of_kind(CauseKind::kTimeout), true, false));
  EXPECT_FALSE(is_retryable(cause_of_kind(CauseKind::kFailedToStart, 2), true, false));
}

TEST(IsRetryable, ANodeThatCannotBeStartedOnlyAfterAnAttemptThatRan) {
  EXPECT_FALSE(is_retryable(cause_of_kind(CauseKind::kStartFailed), false, false));
  EXPECT_TRUE(is_retryable(cause_of_kind(CauseKind::kStartFailed), true, false));
  EXPECT_TRUE(is_retryable(cause_of_kind(CauseKind::kStartFailed), false, true)) << "with a spare";
}

TEST(IsRetryable, BadDataOfOurOwnWorkersStaysBad) {
  Cause cause = cause_of_kind(CauseKind::kExited, 74);
  EXPECT_TRUE(is_retryable(cause, false, false));  // any program's 74
  cause.uses_runtime = true;
  EXPECT_FALSE(is_retryable(cause, false, false));
}

}  // namespace
}  // namespace hvd
