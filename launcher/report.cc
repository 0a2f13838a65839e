#include "launcher/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "launcher/report_error_file.h"
#include "launcher/visible.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kMaxTracebackLines = 60;
constexpr std::size_t kMaxKernelLines = 16;
constexpr std::size_t kMaxStillRanks = 8;

void append_tail(std::string& out, const ReportInput& input) {
  if (!is_of_rank(input.cause) || input.tail.empty()) return;
  out += fmt::format("hvdrun: the last {} that rank {} ({}) wrote to stderr:\n",
                     input.tail.size() == 1 ? "line" : fmt::format("{} lines", input.tail.size()),
                     input.cause.rank, input.cause.host);
  for (const std::string& line : input.tail) append_quoted(out, line);
}

// A traceback that stands in the quoted lines already is not told twice.
bool is_in_tail(const std::vector<std::string>& traceback, const std::vector<std::string>& tail) {
  return !traceback.empty() && !tail.empty() && traceback.back() == tail.back();
}

void append_traceback(std::string& out, const ReportInput& input) {
  if (input.cause.received_signal != 0) return;  // told in the sentence
  auto lines = traceback_lines(input.cause.error_file);
  if (lines.empty() || is_in_tail(lines, input.tail)) return;
  out += fmt::format("hvdrun: the error that rank {} ({}) recorded:\n", input.cause.rank,
                     input.cause.host);
  if (lines.size() > kMaxTracebackLines) {
    out += fmt::format("  | ({} lines left out)\n", lines.size() - kMaxTracebackLines);
    lines.erase(lines.begin(), lines.end() - kMaxTracebackLines);
  }
  for (const std::string& line : lines) append_quoted(out, line);
}

void append_details(std::string& out, const ReportInput& input) {
  for (const std::string& line : input.cause.details) {
    out += "hvdrun:   ";
    append_visible(out, line);
    out += '\n';
  }
}

void append_kernel_log(std::string& out, const ReportInput& input) {
  const std::size_t num_shown = std::min(input.kernel_log.size(), kMaxKernelLines);
  for (std::size_t i = 0; i < num_shown; ++i) {
    out += fmt::format("hvdrun: {}: the kernel's log since the start: ", input.kernel_log[i].host);
    append_visible(out, input.kernel_log[i].text);
    out += '\n';
  }
  const std::size_t num_more = input.kernel_log.size() - num_shown;
  if (num_more > 0) out += fmt::format("hvdrun: {} more such lines\n", num_more);
}

void append_stood_still(std::string& out, const ReportInput& input) {
  const std::size_t num_shown = std::min(input.stood_still.size(), kMaxStillRanks);
  for (std::size_t i = 0; i < num_shown; ++i) {
    const StillRank& still = input.stood_still[i];
    out += fmt::format(
        "hvdrun: rank {} ({}, pid {}) stood still when the job was ended: a signal had stopped it "
        "(state T)\n",
        still.rank, still.host, still.pid);
  }
  const std::size_t num_more = input.stood_still.size() - num_shown;
  if (num_more > 0) out += fmt::format("hvdrun: {} more ranks stood still\n", num_more);
}

void append_consequences(std::string& out, const ReportInput& input) {
  if (input.num_stopped == 0 && input.num_failed_after == 0) return;
  std::string text;
  if (input.num_stopped > 0) text = counted(input.num_stopped, "rank") + " stopped by hvdrun";
  if (input.num_failed_after > 0) {
    text += text.empty() ? counted(input.num_failed_after, "rank")
                         : fmt::format(", {}", input.num_failed_after);
    text += input.num_stopped > 0 ? " failed after it" : " failed after the first cause";
  }
  out += fmt::format("hvdrun: {}\n", text);
}

std::string ports_of(const v1::Survivor& survivor) {
  if (survivor.listening_ports().empty()) return "";
  return fmt::format(", listens on TCP port {}", fmt::join(survivor.listening_ports(), ", "));
}

void append_survivors(std::string& out, const ReportInput& input) {
  for (const NodeSurvivors& node : input.survivors) {
    for (const v1::Survivor& survivor : node.survivors) {
      out += fmt::format(
          "hvdrun: {}: process {} (uid {}, state {}{}{}{}) outlived SIGKILL: ", node.host,
          survivor.pid(), survivor.uid(), survivor.state(), survivor.wchan().empty() ? "" : ", in ",
          survivor.wchan(), ports_of(survivor));
      append_visible(out, survivor.command());
      out += '\n';
    }
  }
}

void append_node_lines(std::string& out, const ReportInput& input) {
  for (const std::string& line : input.node_lines) {
    out += "hvdrun: ";
    append_visible(out, line);
    out += '\n';
  }
}

void append_unverified(std::string& out, const ReportInput& input) {
  for (const UnverifiedNode& node : input.unverified) {
    out += fmt::format("hvdrun: {}: unverified: ", node.host);
    append_visible(out, node.why.empty() ? "it never said that it had finished" : node.why);
    out += '\n';
  }
  if (input.unverified.empty()) return;
  out += fmt::format(
      "hvdrun: an unverified node cleans itself up when its lease has passed; what is left of the "
      "job there carries HVDRUN_JOB_ID={}\n",
      input.job_id);
}

}  // namespace

std::string node_ends_text(const ReportInput& input) {
  std::string out;
  append_survivors(out, input);
  append_node_lines(out, input);
  append_unverified(out, input);
  return out;
}

std::string report_text(const ReportInput& input) {
  std::string out;
  append_tail(out, input);
  append_traceback(out, input);
  append_details(out, input);
  append_kernel_log(out, input);
  append_stood_still(out, input);
  append_consequences(out, input);
  out += node_ends_text(input);
  out += "hvdrun: ";
  // Texts of nodes and transports may hold anything, also line ends; the last line is one line.
  append_visible(out, sentence(input.cause, input.clock));
  out += '\n';
  return out;
}

}  // namespace hvd
