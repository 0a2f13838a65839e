// Exact minimum-cost assignment of queries to boxes. Pure and torch-free.
#pragma once

#include <span>
#include <vector>

namespace hvd::petrv2 {

struct MatchedPair {
  int query = 0;
  int box = 0;

  friend bool operator==(const MatchedPair&, const MatchedPair&) = default;
};

// The pairs of one sample in one decoder layer, by query; min(queries, boxes) of them.
using Assignment = std::vector<MatchedPair>;

// cost: (num_queries, num_boxes), row-major, finite. Shortest augmenting paths with potentials
// (Jonker and Volgenant), O(n^2 m) for n the smaller and m the larger side. Among equal totals the
// choice is deterministic but not promised.
[[nodiscard]] Assignment solve_assignment(std::span<const double> cost, int num_queries,
                                          int num_boxes);

}  // namespace hvd::petrv2
