#include "training/petrv2/loss/assignment.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace hvd::petrv2 {
namespace {

constexpr int kFree = -1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows (the smaller side) are assigned one after the other. Each time a tree of cheapest reduced
// costs grows from the new row until it reaches a free column; then the path to it is flipped.
class Solver {
 public:
  // cost(row, column) with num_rows <= num_columns.
  Solver(std::span<const double> cost, int num_rows, int num_columns, bool is_transposed)
      : cost_(cost),
        num_rows_(num_rows),
        num_columns_(num_columns),
        is_transposed_(is_transposed),
        row_price_(num_rows, 0.0),
        column_price_(num_columns, 0.0),
        row_of_(num_columns, kFree),
        previous_(num_columns, kFree),
        distance_(num_columns),
        is_done_(num_columns) {}

  // The row of each column, kFree for columns without one.
  const std::vector<int>& solve() {
    for (int row = 0; row < num_rows_; ++row) flip_path(grow_tree(row), row);
    return row_of_;
  }

 private:
  [[nodiscard]] double reduced(int row, int column) const {
    const std::size_t at = is_transposed_ ? static_cast<std::size_t>(column) * num_rows_ + row
                                          : static_cast<std::size_t>(row) * num_columns_ + column;
    return cost_[at] - row_price_[row] - column_price_[column];
  }

  void relax(int row, int from_column, double base) {
    for (int column = 0; column < num_columns_; ++column) {
      if (is_done_[column]) continue;
      const double length = base + reduced(row, column);
      if (length < distance_[column]) {
        distance_[column] = length;
        previous_[column] = from_column;
      }
    }
  }

  [[nodiscard]] int nearest() const {
    int best = kFree;
    for (int column = 0; column < num_columns_; ++column) {
      if (!is_done_[column] && (best == kFree || distance_[column] < distance_[best])) {
        best = column;
      }
    }
    return best;
  }

  // The free column at the end of the cheapest path from row; updates the prices on the way.
  int grow_tree(int root) {
    std::fill(distance_.begin(), distance_.end(), kInfinity);
    std::fill(is_done_.begin(), is_done_.end(), false);
    relax(root, kFree, 0.0);
    int column = nearest();
    while (row_of_[column] != kFree) {
      is_done_[column] = true;
      relax(row_of_[column], column, distance_[column]);
      column = nearest();
    }
    update_prices(root, distance_[column]);
    return column;
  }

  void update_prices(int root, double length) {
    row_price_[root] += length;
    for (int column = 0; column < num_columns_; ++column) {
      if (!is_done_[column]) continue;
      row_price_[row_of_[column]] += length - distance_[column];
      column_price_[column] -= length - distance_[column];
    }
  }

  void flip_path(int column, int root) {
    for (; previous_[column] != kFree; column = previous_[column]) {
      row_of_[column] = row_of_[previous_[column]];
    }
    row_of_[column] = root;
  }

  const std::span<const double> cost_;
  const int num_rows_;
  const int num_columns_;
  const bool is_transposed_;
  std::vector<double> row_price_;
  std::vector<double> column_price_;
  std::vector<int> row_of_;
  std::vector<int> previous_;  // column before this one on its path; kFree: the root row
  std::vector<double> distance_;
  std::vector<char> is_done_;
};

}  // namespace

Assignment solve_assignment(std::span<const double> cost, int num_queries, int num_boxes) {
  const bool has_more_queries = num_queries >= num_boxes;
  const int num_rows = std::min(num_queries, num_boxes);
  const int num_columns = std::max(num_queries, num_boxes);
  Solver solver(cost, num_rows, num_columns, has_more_queries);
  const std::vector<int>& row_of = solver.solve();
  Assignment pairs;
  for (int column = 0; column < num_columns; ++column) {
    if (row_of[column] == kFree) continue;
    pairs.push_back(has_more_queries ? MatchedPair{column, row_of[column]}
                                     : MatchedPair{row_of[column], column});
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const MatchedPair& a, const MatchedPair& b) { return a.query < b.query; });
  return pairs;
}

}  // namespace hvd::petrv2
