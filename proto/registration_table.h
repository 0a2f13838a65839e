// A table over the ranks of a job for a person to read: one row for all ranks that have the same
// values, named by their nodes ("node1, node3 (16 ranks)"), by their ranks only where a node is
// split. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct RankTable {
  struct Rank {
    std::uint32_t rank = 0;
    std::string host;
  };
  struct Column {
    std::string name;
    std::vector<std::string> values;  // one for each rank
  };
  std::vector<Rank> ranks;  // in rank order
  std::vector<Column> columns;
};

// A heading and a row for each set of equal values; the largest first.
[[nodiscard]] std::vector<std::string> table_lines(const RankTable& table);

// The same in one line, for a table of one column: "2.28.9 on node1, node3; 2.27.3 on node2".
[[nodiscard]] std::string summary_of(const RankTable& table);

// "rank 3", "ranks 0-2, 5"; at most sixteen pieces are named.
[[nodiscard]] std::string rank_list(const std::vector<std::uint32_t>& ranks);

}  // namespace hvd
