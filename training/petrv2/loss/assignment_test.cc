#include "training/petrv2/loss/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace hvd::petrv2 {
namespace {

double total_cost(const std::vector<double>& cost, int num_boxes, const Assignment& pairs) {
  double total = 0;
  for (const auto& [query, box] : pairs) total += cost[query * num_boxes + box];
  return total;
}

// The best total over all injections of the smaller side into the larger one.
double best_total(const std::vector<double>& cost, int num_queries, int num_boxes) {
  const int larger = std::max(num_queries, num_boxes);
  const int smaller = std::min(num_queries, num_boxes);
  std::vector<int> order(larger);
  std::iota(order.begin(), order.end(), 0);
  double best = 1e300;
  do {
    double total = 0;
    for (int i = 0; i < smaller; ++i) {
      total += num_queries >= num_boxes ? cost[order[i] * num_boxes + i]
                                        : cost[i * num_boxes + order[i]];
    }
    best = std::min(best, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void expect_one_to_one(const Assignment& pairs, int num_queries, int num_boxes) {
  std::set<int> queries, boxes;
  for (const auto& [query, box] : pairs) {
    EXPECT_TRUE(query >= 0 && query < num_queries && box >= 0 && box < num_boxes);
    queries.insert(query);
    boxes.insert(box);
  }
  const auto expected = static_cast<std::size_t>(std::min(num_queries, num_boxes));
  EXPECT_EQ(queries.size(), expected);
  EXPECT_EQ(boxes.size(), expected);
  EXPECT_EQ(pairs.size(), expected);
}

TEST(Assignment, EqualsBruteForceOnAllSmallShapes) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-10, 10);
  for (int num_queries = 1; num_queries <= 6; ++num_queries) {
    for (int num_boxes = 1; num_boxes <= 6; ++num_boxes) {
      for (int trial = 0; trial < 5; ++trial) {
        std::vector<double> cost(static_cast<std::size_t>(num_queries) * num_boxes);
        std::generate(cost.begin(), cost.end(), [&] { return uniform(random); });
        const Assignment pairs = solve_assignment(cost, num_queries, num_boxes);
        expect_one_to_one(pairs, num_queries, num_boxes);
        EXPECT_NEAR(total_cost(cost, num_boxes, pairs), best_total(cost, num_queries, num_boxes),
                    1e-9);
      }
    }
  }
}

TEST(Assignment, EqualCostsStillGiveAnOptimum) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> cost(30);
    std::generate(cost.begin(), cost.end(), [&] { return static_cast<double>(random() % 3); });
    const Assignment pairs = solve_assignment(cost, 6, 5);
    expect_one_to_one(pairs, 6, 5);
    EXPECT_EQ(total_cost(cost, 5, pairs), best_total(cost, 6, 5));
  }
}

TEST(Assignment, WithoutBoxesOrQueriesIsEmpty) {
  EXPECT_TRUE(solve_assignment({}, 5, 0).empty());
  EXPECT_TRUE(solve_assignment({}, 0, 5).empty());
}

TEST(Assignment, TakesTheReplacementCosts) {
  const std::vector<double> cost{100, -100, 100, 1, 2, 100};  // what NaN and infinity become
  EXPECT_EQ(solve_assignment(cost, 3, 2), (Assignment{{0, 1}, {2, 0}}));
}

TEST(Assignment, SolvesAFullSizeProblem) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(0, 100);
  std::vector<double> cost(900 * 100);
  std::generate(cost.begin(), cost.end(), [&] { return uniform(random); });
  const Assignment pairs = solve_assignment(cost, 900, 100);
  expect_one_to_one(pairs, 900, 100);
  // No exchange of two boxes, and no move to a free query, is cheaper.
  std::vector<int> box_of(900, -1);
  for (const auto& [query, box] : pairs) box_of[query] = box;
  for (const auto& [query, box] : pairs) {
    for (int other = 0; other < 900; ++other) {
      const double before =
          cost[query * 100 + box] + (box_of[other] < 0 ? 0 : cost[other * 100 + box_of[other]]);
      const double after =
          cost[other * 100 + box] + (box_of[other] < 0 ? 0 : cost[query * 100 + box_of[other]]);
      EXPECT_GE(after, before - 1e-9);
    }
  }
}

}  // namespace
}  // namespace hvd::petrv2
