#include "agent/gpu_table.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace hvd {
namespace {

using nlohmann::json;

// In the order of the query; the first three are texts.
constexpr std::array kColumns = {"index",         "name",           "uuid",        "utilization",
                                 "memory_used",   "memory_total",   "temperature", "power",
                                 "ecc_corrected", "ecc_uncorrected"};
constexpr std::size_t kNumTexts = 3;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ') || cell.ends_with('\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

template <typename Number>
bool is_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

json gpu_of(const std::vector<std::string_view>& cells) {
  json gpu = json::object();
  unsigned index = 0;
  if (cells.size() != kColumns.size() || !is_number(cells[0], &index)) return gpu;
  gpu["index"] = index;
  for (std::size_t i = 1; i < kNumTexts; ++i) gpu[kColumns[i]] = std::string(cells[i]);
  for (std::size_t i = kNumTexts; i < kColumns.size(); ++i) {
    double number = 0;
    if (is_number(cells[i], &number)) gpu[kColumns[i]] = number;
  }
  return gpu;
}

json table_of(std::string_view output) {
  json gpus = json::array();
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    json gpu = gpu_of(cells_of(output.substr(0, end)));
    if (!gpu.empty()) gpus.push_back(std::move(gpu));
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
  }
  return gpus;
}

std::string dump_table(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace

std::string gpu_table_json(std::string_view output) { return dump_table(table_of(output)); }

Task<std::string> GpuTable::ask(const EnvList& env) {
  std::string problem;
  if (is_asking_) {
    co_await answered_.wait();
  } else if (question_.find_program(env)) {
    is_asking_ = true;
    answered_.clear();
    question_.ask(std::string(kGpuTableQuery), [this](const std::string& output) {
      output_ = output;
      is_asking_ = false;
      answered_.set();
    });
    co_await answered_.wait();
    if (output_.empty()) problem = "nvidia-smi did not answer";
  } else {
    problem = "nvidia-smi is not on the PATH";
  }
  const auto news = log_.read_new();
  for (const auto& fact : news.facts()) {
    if (fact.kind() == hvdrun::v1::KernelFact::KIND_XID) ++xids_[{fact.device(), fact.code()}];
  }
  json xids = json::array();
  for (const auto& [what, count] : xids_) {
    xids.push_back({{"pci", what.first}, {"xid", what.second}, {"count", count}});
  }
  co_return dump_table({{"gpus", problem.empty() ? table_of(output_) : json::array()},
                        {"xid", xids},
                        {"problem", problem}});
}

}  // namespace hvd
