#include "launcher/hvdctl/control_command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/host_name.h"
#include "launcher/hvdctl/control_text.h"
#include "launcher/options_checks.h"
#include "proto/tls_context.h"

namespace hvd {
namespace {

constexpr int kNodeFailed = 1;

std::string error_line(std::string_view text) { return fmt::format("hvdctl: error: {}\n", text); }

ControlOutcome failed(const Error& error) {
  const bool is_usage = error.code == ExitCode::kUsage;
  return {"", error_line(error.message),
          is_usage ? static_cast<int>(ExitCode::kUsage) : kNodeFailed};
}

Result<ControlReach> reach_of(const ControlTargets& targets, std::chrono::nanoseconds timeout) {
  ControlReach reach{targets.socket, nullptr, "", timeout};
  if (targets.tls_dir.empty()) return reach;
  if (auto there = check_user_files(targets.tls_dir); !there) {
    return tl::unexpected(there.error());
  }
  const TlsFiles files = user_files_in(targets.tls_dir);
  auto context = make_tls_context(files, TlsEnd::kClient);
  if (!context) return make_error(ExitCode::kUsage, "{}", context.error().message);
  reach.context = std::move(*context);
  reach.certificate = files.certificate;
  return reach;
}

// One command: what it asks, and what it has to tell of the answers.
class ControlRun {
 public:
  ControlRun(Loop& loop, const ControlOptions& options, const ControlReach& reach,
             const std::vector<NodeAddress>& nodes)
      : loop_(loop), options_(options), reach_(reach), nodes_(nodes) {}

  ControlOutcome run(std::int64_t now) {
    switch (options_.verb) {
      case ControlVerb::kNodes:
        tell_nodes();
        break;
      case ControlVerb::kJobs:
        tell_jobs(now);
        break;
      case ControlVerb::kKill:
        kill();
        break;
      case ControlVerb::kDrain:
        drain(options_.reason.empty() ? "drain" : "drain " + options_.reason);
        break;
      case ControlVerb::kUndrain:
        drain("undrain");
        break;
    }
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] std::string name_of_node(const NodeAddress& node) const {
    return node.host.empty() ? host_name() : node.host;
  }

  std::vector<NodeReport> ask_status() {
    const auto answers = ask_all(loop_, reach_, nodes_, "status");
    std::vector<NodeReport> reports;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      NodeReport report{name_of_node(nodes_[i]), answers[i].and_then(parse_status)};
      if (report.status && nodes_[i].host.empty()) report.name = report.status->node;
      reports.push_back(std::move(report));
    }
    return reports;
  }

  void blame(std::string_view node, const ControlFailure& failure) {
    outcome_.code = kNodeFailed;
    outcome_.err += error_line(fmt::format("{}: {}", shown_cut(node), failure_text(failure)));
  }
  void blame_all(const std::vector<NodeReport>& reports) {
    for (const NodeReport& report : reports) {
      if (!report.status) blame(report.name, report.status.error());
    }
  }

  // The table itself says which nodes have no answer.
  void tell_nodes() {
    const auto reports = ask_status();
    outcome_.out = options_.is_json ? nodes_json(reports) : nodes_table(reports);
    const bool has_all = std::all_of(reports.begin(), reports.end(), [](const NodeReport& report) {
      return report.status.has_value();
    });
    if (!has_all) outcome_.code = kNodeFailed;
  }

  void tell_jobs(std::int64_t now) {
    const auto reports = ask_status();
    const auto jobs = join_jobs(reports);
    outcome_.out = options_.is_json ? jobs_json(jobs, reports) : jobs_table(jobs, now);
    blame_all(reports);
  }

  // A launcher ends its job everywhere as soon as one node has stopped it: elsewhere the job may be
  // gone before we are heard.
  void kill() {
    const auto reports = ask_status();
    blame_all(reports);
    const auto job = find_job(join_jobs(reports), options_.job);
    if (!job) {
      outcome_.code = kNodeFailed;
      outcome_.err += error_line(job.error().message);
      return;
    }
    std::vector<NodeAddress> with_job;
    for (const JobPart& part : job->parts) with_job.push_back(nodes_[part.report]);
    const auto answers = ask_all(loop_, reach_, with_job, "kill " + job->id);
    std::vector<std::string> stopped;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto number = answers[i].and_then(parse_stopped);
      if (!number) blame(job->parts[i].node, number.error());
      if (number && *number > 0) stopped.push_back(shown_cut(job->parts[i].node));
    }
    if (!stopped.empty()) {
      outcome_.out = fmt::format("job {}: stopped on {}\n", job->id, fmt::join(stopped, ", "));
    } else if (outcome_.code == 0) {
      outcome_.out = fmt::format("job {}: had ended already\n", job->id);
    }
  }

  void drain(const std::string& words) {
    const auto answers = ask_all(loop_, reach_, nodes_, words);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::string name = shown_cut(name_of_node(nodes_[i]));
      const auto draining = answers[i].and_then(parse_draining);
      if (!draining) {
        blame(name, draining.error());
      } else if (draining->empty()) {
        outcome_.out += fmt::format("{}: takes jobs\n", name);
      } else {
        outcome_.out += fmt::format("{}: draining: {}\n", name, shown_cut(*draining));
      }
    }
  }

  Loop& loop_;  // these four are not owned
  const ControlOptions& options_;
  const ControlReach& reach_;
  const std::vector<NodeAddress>& nodes_;
  ControlOutcome outcome_;
};

}  // namespace

ControlOutcome run_control(Loop& loop, const std::vector<std::string>& words,
                           const EnvList& environment, std::int64_t now) {
  const auto options = parse_control(words);
  if (!options) return failed(options.error());
  if (options->wants_help) return {control_help(options->verb), "", 0};
  const auto targets = targets_of(*options, environment);
  if (!targets) return failed(targets.error());
  const auto reach = reach_of(*targets, options->timeout);
  if (!reach) return failed(reach.error());
  return ControlRun(loop, *options, *reach, targets->nodes).run(now);
}

}  // namespace hvd
