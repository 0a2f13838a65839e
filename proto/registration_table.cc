#include "proto/registration_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/plural.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxNamed = 16;

struct Row {
  std::vector<std::string> values;
  std::vector<const RankTable::Rank*> ranks;
};

std::vector<Row> rows_of(const RankTable& table) {
  std::vector<Row> rows;
  std::map<std::vector<std::string>, std::size_t> place;
  for (std::size_t i = 0; i < table.ranks.size(); ++i) {
    std::vector<std::string> values;
    for (const auto& column : table.columns) values.push_back(column.values[i]);
    const auto [found, is_new] = place.emplace(values, rows.size());
    if (is_new) rows.push_back({values, {}});
    rows[found->second].ranks.push_back(&table.ranks[i]);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.ranks.size() > b.ranks.size(); });
  return rows;
}

std::map<std::string, std::size_t> ranks_by_host(const RankTable& table) {
  std::map<std::string, std::size_t> count;
  for (const auto& rank : table.ranks) ++count[rank.host];
  return count;
}

void cut(std::vector<std::string>& names) {
  if (names.size() <= kMaxNamed) return;
  const std::size_t num_left = names.size() - kMaxNamed;
  names.resize(kMaxNamed);
  names.push_back(fmt::format("and {} more", num_left));
}

// Whole nodes by name, parts of a node with their ranks; in rank order.
std::string nodes_of(const Row& row, const std::map<std::string, std::size_t>& all) {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> parts;
  for (const auto* rank : row.ranks) {
    const auto found = std::find_if(parts.begin(), parts.end(),
                                    [&](const auto& part) { return part.first == rank->host; });
    auto& part = found != parts.end() ? *found : parts.emplace_back(rank->host, 0);
    part.second.push_back(rank->rank);
  }
  std::vector<std::string> names;
  for (const auto& [host, ranks] : parts) {
    const bool is_whole = ranks.size() == all.at(host);
    names.push_back(is_whole ? host : fmt::format("{} {}", host, rank_list(ranks)));
  }
  cut(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The ranks from `begin` on that follow each other without a gap.
std::size_t end_of_run(const std::vector<std::uint32_t>& ranks, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
  return end;
}

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::size_t> widths(cells.front().size(), 0);
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  return widths;
}

}  // namespace

std::vector<std::string> table_lines(const RankTable& table) {
  const auto by_host = ranks_by_host(table);
  std::vector<std::vector<std::string>> cells(1, {"nodes"});
  for (const auto& column : table.columns) cells.front().push_back(column.name);
  for (const Row& row : rows_of(table)) {
    auto& line = cells.emplace_back(row.values);
    line.insert(line.begin(),
                fmt::format("{} ({})", nodes_of(row, by_host), counted(row.ranks.size(), "rank")));
  }
  const auto widths = widths_of(cells);
  std::vector<std::string> lines;
  for (const auto& line : cells) {
    std::string text;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      text += fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    lines.push_back(text + line.back());
  }
  return lines;
}

std::string summary_of(const RankTable& table) {
  const auto by_host = ranks_by_host(table);
  std::vector<std::string> parts;
  for (const Row& row : rows_of(table)) {
    parts.push_back(fmt::format("{} on {}", row.values.front(), nodes_of(row, by_host)));
  }
  cut(parts);
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string rank_list(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < ranks.size();) {
    const std::size_t end = end_of_run(ranks, i);
    const bool is_range = end - i > 2;
    pieces.push_back(is_range ? fmt::format("{}-{}", ranks[i], ranks[end - 1])
                              : fmt::format("{}", ranks[i]));
    i = is_range ? end : i + 1;
  }
  cut(pieces);
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(pieces, ", "));
}

}  // namespace hvd
