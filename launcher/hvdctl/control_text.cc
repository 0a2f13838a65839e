#include "launcher/hvdctl/control_text.h"

#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shown.h"

namespace hvd {
namespace {

using OrderedJson = nlohmann::ordered_json;
using TableRow = std::vector<std::string>;

constexpr std::size_t kLongestText = 300;  // bytes

// In characters: bytes that do not go on with one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Columns are as wide as their widest cell; the last one is left as it is.
std::string format_table(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += row[i] + std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

std::string dash_if_empty(std::string text) { return text.empty() ? "-" : std::move(text); }

const char* kind_word(ControlFailure::Kind kind) {
  switch (kind) {
    case ControlFailure::Kind::kUnreachable:
      return "unreachable";
    case ControlFailure::Kind::kRefused:
      return "refused";
    case ControlFailure::Kind::kFaulty:
      break;
  }
  return "faulty";
}

// Of this year with the time of day, else the day; "?" for what is no time.
std::string time_text(std::int64_t at, std::int64_t now) {
  const auto moment = static_cast<time_t>(at);
  const auto present = static_cast<time_t>(now);
  struct tm when {};
  struct tm today {};
  if (at <= 0 || localtime_r(&moment, &when) == nullptr ||
      localtime_r(&present, &today) == nullptr) {
    return "?";
  }
  std::array<char, 32> text{};
  const char* const format = when.tm_year == today.tm_year ? "%m-%d %H:%M" : "%Y-%m-%d";
  const std::size_t size = strftime(text.data(), text.size(), format, &when);
  return size == 0 ? "?" : std::string(text.data(), size);
}

// What the parts say, each once, in their order.
template <typename TextOf>
std::string text_of_all(const ClusterJob& job, const char* between, const TextOf& text_of) {
  std::vector<std::string> different;
  for (const JobPart& part : job.parts) {
    std::string text = text_of(part);
    if (std::find(different.begin(), different.end(), text) == different.end()) {
      different.push_back(std::move(text));
    }
  }
  return shown_cut(fmt::format("{}", fmt::join(different, between)));
}

// "alice@10.0.0.9": whose certificate, and where hvdrun runs.
std::string origin_of(const JobPart& part) {
  const JobStatus& status = part.status;
  if (status.client.empty() || status.from.empty()) return status.client + status.from;
  return status.client + "@" + status.from;
}

TableRow job_row(const ClusterJob& job, std::size_t num_digits, std::int64_t now) {
  const auto column = [&](const char* between, auto text_of) {
    return dash_if_empty(text_of_all(job, between, text_of));
  };
  return {job.id.substr(0, num_digits),
          column("/", [](const JobPart& part) { return part.status.user; }),
          column("/", origin_of),
          time_text(job.since(), now),
          column("/", [](const JobPart& part) { return part.status.gpus; }),
          column("/", [](const JobPart& part) { return part.status.state; }),
          column(",", [](const JobPart& part) { return part.node; })};
}

// In ASCII, so that no byte of it does anything to a terminal.
std::string printed(const OrderedJson& json) {
  return json.dump(2, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

std::string error_of(const ControlFailure& failure) {
  return fmt::format("{}: {}", kind_word(failure.kind), failure.why);
}

}  // namespace

std::string shown_cut(std::string_view text) {
  const std::string start = shown(text.substr(0, kLongestText));
  return text.size() > kLongestText ? start + "..." : start;
}

std::string failure_text(const ControlFailure& failure) { return shown_cut(error_of(failure)); }

std::string nodes_table(const std::vector<NodeReport>& reports) {
  std::vector<TableRow> rows = {{"NODE", "VERSION", "JOBS", "GPUS", "STATE"}};
  for (const NodeReport& report : reports) {
    if (!report.status) {
      rows.push_back({shown_cut(report.name), "-", "-", "-", failure_text(report.status.error())});
      continue;
    }
    const NodeStatus& status = *report.status;
    std::string jobs = fmt::format("{}", status.jobs.size());
    if (status.max_jobs > 0) jobs += fmt::format("/{}", status.max_jobs);
    rows.push_back({shown_cut(report.name), dash_if_empty(shown_cut(status.version)),
                    std::move(jobs), fmt::format("{}", status.num_gpus),
                    status.draining.empty() ? "ok" : shown_cut("draining: " + status.draining)});
  }
  return format_table(rows);
}

std::string jobs_table(const std::vector<ClusterJob>& jobs, std::int64_t now) {
  std::vector<TableRow> rows = {{"JOB", "USER", "FROM", "SINCE", "GPUS", "STATE", "NODES"}};
  const std::size_t num_digits = shown_digits(jobs);
  for (const ClusterJob& job : jobs) rows.push_back(job_row(job, num_digits, now));
  return format_table(rows);
}

std::string nodes_json(const std::vector<NodeReport>& reports) {
  OrderedJson nodes = OrderedJson::array();
  for (const NodeReport& report : reports) {
    OrderedJson node;
    node["name"] = report.name;
    if (!report.status) {
      node["state"] = kind_word(report.status.error().kind);
      node["reason"] = report.status.error().why;
      nodes.push_back(std::move(node));
      continue;
    }
    const NodeStatus& status = *report.status;
    node["state"] = status.draining.empty() ? "ok" : "draining";
    node["reason"] = status.draining;
    node["version"] = status.version;
    node["started"] = status.started;
    node["jobs"] = status.jobs.size();
    node["max_jobs"] = status.max_jobs;
    node["gpus"] = status.num_gpus;
    nodes.push_back(std::move(node));
  }
  OrderedJson all;
  all["nodes"] = std::move(nodes);
  return printed(all);
}

std::string jobs_json(const std::vector<ClusterJob>& jobs, const std::vector<NodeReport>& reports) {
  OrderedJson list = OrderedJson::array();
  for (const ClusterJob& job : jobs) {
    const JobStatus& first = job.parts.front().status;
    OrderedJson one;
    one["job"] = job.id;
    one["user"] = first.user;
    one["client"] = first.client;
    one["from"] = first.from;
    one["since"] = job.since();
    one["nodes"] = OrderedJson::array();
    for (const JobPart& part : job.parts) {
      OrderedJson node;
      node["node"] = part.node;
      node["index"] = part.status.index;
      node["state"] = part.status.state;
      node["gpus"] = part.status.gpus;
      node["unit"] = part.status.unit;
      one["nodes"].push_back(std::move(node));
    }
    list.push_back(std::move(one));
  }
  OrderedJson all;
  all["jobs"] = std::move(list);
  all["errors"] = OrderedJson::array();
  for (const NodeReport& report : reports) {
    if (report.status) continue;
    OrderedJson error;
    error["name"] = report.name;
    error["error"] = error_of(report.status.error());
    all["errors"].push_back(std::move(error));
  }
  return printed(all);
}

}  // namespace hvd
