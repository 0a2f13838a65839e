// Every golden number of the specification, one test a group.
#include "training/petrv2/verify/golden.h"

#include <gtest/gtest.h>

namespace hvd::petrv2 {
namespace {

void expect_good(const GoldenChecks& checks, std::size_t at_least) {
  EXPECT_GE(checks.size(), at_least);
  for (const GoldenCheck& check : checks) {
    EXPECT_NEAR(check.got, check.expected, check.tolerance) << check.group << ": " << check.name;
  }
}

TEST(Golden, Formulas) { expect_good(check_small_cases(), 80); }
TEST(Golden, ParameterCounts) { expect_good(check_parameter_counts(), 10); }
TEST(Golden, Head) { expect_good(check_head(), 100); }
TEST(Golden, DenoisingHead) { expect_good(check_denoising_head(), 30); }
TEST(Golden, Backbones) { expect_good(check_backbones(), 80); }

TEST(Golden, AMissIsSeen) {
  EXPECT_FALSE((GoldenCheck{"", "", 1.0, 1.1, 0.01}.is_good()));
  EXPECT_TRUE((GoldenCheck{"", "", 1.0, 1.005, 0.01}.is_good()));
}

}  // namespace
}  // namespace hvd::petrv2
