#include "launcher/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/plural.h"
#include "launcher/visible.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kMaxTracebackLines = 60;

bool has_rank(const Cause& cause) {
  return cause.kind == CauseKind::kExited || cause.kind == CauseKind::kSignalled ||
         cause.kind == CauseKind::kFailedToStart;
}

void append_quoted(std::string& out, std::string_view line, bool is_terminal) {
  out += "  | ";
  if (is_terminal) {
    append_visible(out, line);
  } else {
    out += line;
  }
  out += '\n';
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void append_tail(std::string& out, const ReportInput& input) {
  if (!has_rank(input.cause) || input.tail.empty()) return;
  out += fmt::format("hvdrun: the last {} that rank {} ({}) wrote to stderr:\n",
                     input.tail.size() == 1 ? "line" : fmt::format("{} lines", input.tail.size()),
                     input.cause.rank, input.cause.host);
  for (const std::string& line : input.tail) append_quoted(out, line, input.is_terminal);
}

// A traceback that stands in the quoted lines already is not told twice.
bool is_in_tail(const std::vector<std::string_view>& traceback,
                const std::vector<std::string>& tail) {
  return !traceback.empty() && !tail.empty() && traceback.back() == tail.back();
}

void append_traceback(std::string& out, const ReportInput& input) {
  const std::string text = traceback_in(input.cause.error_file);
  auto lines = split_lines(text);
  if (lines.empty() || is_in_tail(lines, input.tail)) return;
  out += fmt::format("hvdrun: the error that rank {} ({}) recorded:\n", input.cause.rank,
                     input.cause.host);
  if (lines.size() > kMaxTracebackLines) {
    out += fmt::format("  | ({} lines left out)\n", lines.size() - kMaxTracebackLines);
    lines.erase(lines.begin(), lines.end() - kMaxTracebackLines);
  }
  for (const std::string_view line : lines) append_quoted(out, line, input.is_terminal);
}

void append_details(std::string& out, const ReportInput& input) {
  for (const std::string& line : input.cause.details) {
    out += "hvdrun:   ";
    append_visible(out, line);
    out += '\n';
  }
}

void append_consequences(std::string& out, const ReportInput& input) {
  if (input.num_stopped == 0 && input.num_failed_after == 0) return;
  std::string text;
  if (input.num_stopped > 0) text = counted(input.num_stopped, "rank") + " stopped by hvdrun";
  if (input.num_failed_after > 0) {
    text += text.empty() ? counted(input.num_failed_after, "rank")
                         : fmt::format(", {}", input.num_failed_after);
    text += " failed after the first cause";
  }
  out += fmt::format("hvdrun: {}\n", text);
}

void append_survivors(std::string& out, const ReportInput& input) {
  for (const NodeSurvivors& node : input.survivors) {
    for (const v1::Survivor& survivor : node.survivors) {
      out +=
          fmt::format("hvdrun: {}: process {} (uid {}, state {}{}{}) outlived SIGKILL: ", node.host,
                      survivor.pid(), survivor.uid(), survivor.state(),
                      survivor.wchan().empty() ? "" : ", in ", survivor.wchan());
      append_visible(out, survivor.command());
      out += '\n';
    }
  }
}

void append_unconfirmed(std::string& out, const ReportInput& input) {
  if (input.unconfirmed_hosts.empty()) return;
  out += fmt::format(
      "hvdrun: not confirmed clean: {} (it should clean itself up when its lease has passed; its "
      "processes carry HVDRUN_JOB_ID={})\n",
      fmt::join(input.unconfirmed_hosts, ", "), input.job_id);
}

}  // namespace

std::string traceback_in(std::string_view error_file) {
  if (error_file.empty()) return {};
  const auto json = nlohmann::json::parse(error_file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("message")) return {};
  const auto& message = json["message"];
  if (message.is_string()) return message.get<std::string>();
  const auto text_at = [&](const char* pointer) -> std::string {
    const nlohmann::json::json_pointer path(pointer);
    if (!message.is_object() || !message.contains(path) || !message[path].is_string()) return {};
    return message[path].get<std::string>();
  };
  const std::string traceback = text_at("/extraInfo/py_callstack");
  return traceback.empty() ? text_at("/message") : traceback;
}

std::string report_text(const ReportInput& input) {
  std::string out;
  append_tail(out, input);
  append_traceback(out, input);
  append_details(out, input);
  append_consequences(out, input);
  append_survivors(out, input);
  append_unconfirmed(out, input);
  out += "hvdrun: ";
  // Texts of nodes and transports may hold anything, also line ends; the last line is one line.
  append_visible(out, sentence(input.cause, input.clock));
  out += '\n';
  return out;
}

}  // namespace hvd
