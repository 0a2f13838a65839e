#include "training/petrv2/verify/inspect.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "training/petrv2/config.h"
#include "training/petrv2/data/inspect_records.h"
#include "training/petrv2/model/parameter_table.h"
#include "training/petrv2/verify/options.h"

namespace hvd::petrv2 {
namespace {

int inspect_failed(const Error& error) {
  fmt::print(stderr, "petrv2 inspect: {}\n", error.message);
  return static_cast<int>(error.code);
}

std::int64_t count_of(const TableRow& row) {
  std::int64_t count = 1;
  for (const std::int64_t side : row.shape) count *= side;
  return count;
}

struct Totals {
  std::int64_t all = 0, trainable = 0;
};

Totals totals_of(const std::vector<TableRow>& rows) {
  Totals totals;
  for (const TableRow& row : rows) {
    totals.all += count_of(row);
    if (row.is_trainable) totals.trainable += count_of(row);
  }
  return totals;
}

void print_table(const Config& config, const std::vector<TableRow>& rows) {
  std::size_t width = 0;
  for (const TableRow& row : rows) width = std::max(width, row.name.size());
  for (const TableRow& row : rows) {
    fmt::print("{:<{}}  {:>10}  {}{}\n", row.name, width, count_of(row), fmt::join(row.shape, "x"),
               row.is_trainable ? "" : "  frozen");
  }
  const Totals totals = totals_of(rows);
  fmt::print("{}: {} parameters in {} tensors, {} of them trainable\n", config.name, totals.all,
             rows.size(), totals.trainable);
}

void print_json(const Config& config, const std::vector<TableRow>& rows) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TableRow& row : rows) {
    tensors.push_back({{"name", row.name},
                       {"shape", row.shape},
                       {"count", count_of(row)},
                       {"trainable", row.is_trainable}});
  }
  const Totals totals = totals_of(rows);
  const nlohmann::ordered_json object{{"config", config.name},
                                      {"parameters", totals.all},
                                      {"trainable", totals.trainable},
                                      {"tensors", tensors}};
  fmt::print("{}\n", object.dump(1));
}

int inspect_config(const InspectOptions& options) {
  const auto config = load_config(options.config);
  if (!config) return inspect_failed(config.error());
  const std::vector<TableRow> rows = list_tensors(config->model);
  if (options.is_json) {
    print_json(*config, rows);
  } else {
    print_table(*config, rows);
  }
  return 0;
}

}  // namespace

int run_inspect(const std::vector<std::string>& arguments) {
  const auto options = parse_inspect_options(arguments);
  if (!options) return inspect_failed(options.error());
  if (options->is_help) {
    fmt::print("{}", inspect_help());
    return 0;
  }
  if (options->config.empty()) return run_inspect_records(options->folder, options->is_json);
  return inspect_config(*options);
}

}  // namespace hvd::petrv2
