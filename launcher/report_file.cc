#include "launcher/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/disk_file.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "launcher/events.h"
#include "launcher/report_error_file.h"
#include "launcher/report_options.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

using nlohmann::ordered_json;
namespace v1 = hvdrun::v1;

constexpr int kReportVersion = 1;

// Absent values are null, so that every member is always there.
template <typename Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json time_json(const std::optional<Nanos>& boottime, const JobClock& clock) {
  return boottime ? ordered_json(utc_text(*boottime + clock.realtime_offset))
                  : ordered_json(nullptr);
}

ordered_json signal_json(const std::optional<int>& signal) {
  return signal ? ordered_json(signal_name(*signal)) : ordered_json(nullptr);
}

ordered_json cause_json(const RunFacts& facts) {
  if (!facts.cause) return nullptr;
  const Cause& cause = *facts.cause;
  const bool has_rank = is_of_rank(cause) || cause.kind == CauseKind::kStalled;
  const bool is_exit = cause.kind == CauseKind::kExited;
  const bool is_signal = cause.kind == CauseKind::kSignalled;
  return {{"class", class_name(cause.kind)},
          {"sentence", sentence(cause, facts.clock)},
          {"time", time_json(cause.time, facts.clock)},
          {"rank", has_rank ? ordered_json(cause.rank) : ordered_json(nullptr)},
          {"host", text_or_null(cause.host)},
          {"pid", cause.pid > 0 ? ordered_json(cause.pid) : ordered_json(nullptr)},
          {"code", is_exit ? ordered_json(cause.value) : ordered_json(nullptr)},
          {"signal", is_signal ? ordered_json(signal_name(cause.value)) : ordered_json(nullptr)},
          {"sent_by_hvdrun", is_signal && cause.signal_was_ours},
          {"core", cause.core_dumped},
          {"oom", !cause.oom_proof.empty()},
          {"oom_proof", text_or_null(cause.oom_proof)},
          {"xid", cause.xids},
          {"traceback", traceback_lines(cause.error_file)},
          {"last_lines", facts.last_lines},
          {"details", cause.details}};
}

ordered_json rank_json(std::size_t rank, const RankFacts& facts, const JobClock& clock) {
  return {{"rank", rank},
          {"host", facts.host},
          {"pid", facts.pid > 0 ? ordered_json(facts.pid) : ordered_json(nullptr)},
          {"state", state_name(facts.state)},
          {"code", or_null(facts.code)},
          {"signal", signal_json(facts.signal)},
          {"started", time_json(facts.started, clock)},
          {"ended", time_json(facts.ended, clock)}};
}

ordered_json survivors_json(const std::vector<v1::Survivor>& survivors) {
  ordered_json list = ordered_json::array();
  for (const v1::Survivor& survivor : survivors) {
    list.push_back({{"pid", survivor.pid()},
                    {"uid", survivor.uid()},
                    {"state", survivor.state()},
                    {"wchan", survivor.wchan()},
                    {"command", survivor.command()}});
  }
  return list;
}

ordered_json node_json(const NodeFacts& facts) {
  const char* clean = facts.is_verified          ? "verified"
                      : !facts.survivors.empty() ? "survivors"
                      : facts.is_spawned         ? "unverified"
                                                 : "not_used";
  return {{"host", facts.host},
          {"agent_version", text_or_null(facts.agent_version)},
          {"layer", text_or_null(facts.layer)},
          {"clean", clean},
          {"why_unverified", text_or_null(facts.why_unverified)},
          {"survivors", survivors_json(facts.survivors)},
          {"remains", facts.remains},
          {"kernel_log", facts.kernel_log}};
}

void add_sections(ordered_json& report, const RunFacts& facts) {
  for (const auto& [name, text] : facts.sections) {
    auto section = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    report[name] = section.is_discarded() ? ordered_json(nullptr) : std::move(section);
  }
}

// 0 or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

// 0 or errno; nothing is left of a file that could not be finished.
int replace_file(const std::string& path, std::string_view text) {
  std::string temporary = path + std::string(kTemporaryEnd);
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.is_valid()) return errno;
  int error = write_at(fd.get(), text, 0);
  if (error == 0 && ::fchmod(fd.get(), 0666 & ~sys::current_umask()) != 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

}  // namespace

const char* state_name(RankState state) {
  switch (state) {
    case RankState::kNotStarted:
      return "not_started";
    case RankState::kRunning:
      return "running";
    case RankState::kSucceeded:
      return "succeeded";
    case RankState::kStopped:
      return "stopped";
    case RankState::kFailed:
      return "failed";
    case RankState::kFailedToStart:
      return "failed_to_start";
  }
  return "unknown";
}

std::string report_json(const RunFacts& facts) {
  ordered_json ranks = ordered_json::array();
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    ranks.push_back(rank_json(rank, facts.ranks[rank], facts.clock));
  }
  ordered_json nodes = ordered_json::array();
  for (const NodeFacts& node : facts.nodes) nodes.push_back(node_json(node));
  const bool has_started = facts.clock.start != Nanos::zero();
  ordered_json report = {
      {"version", kReportVersion},
      {"job", facts.job_id},
      {"command", facts.command},
      {"begun", time_json(facts.begun, facts.clock)},
      {"started",
       time_json(has_started ? std::optional(facts.clock.start) : std::nullopt, facts.clock)},
      {"ended", time_json(facts.ended, facts.clock)},
      {"exit_code", facts.code},
      {"reason", facts.cause           ? class_name(facts.cause->kind)
                 : facts.error.empty() ? "success"
                                       : "error"},
      {"error", text_or_null(facts.error)},
      {"first_cause", cause_json(facts)},
      {"num_stopped", facts.num_stopped},
      {"num_failed_after", facts.num_failed_after},
      {"ranks", std::move(ranks)},
      {"nodes", std::move(nodes)},
  };
  for (const char* name : {"restarts", "stall", "gpu"}) report[name] = nullptr;
  add_sections(report, facts);
  return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

Result<void> write_report(const std::string& path, std::string_view text) {
  const int error = path == kStdoutName ? write_all(STDOUT_FILENO, text) : replace_file(path, text);
  if (error == 0) return {};
  return make_error("--report {}: it could not be written: {}; what stood there is as it was",
                    show(path), std::strerror(error));
}

}  // namespace hvd
