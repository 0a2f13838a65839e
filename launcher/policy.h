// Which event ended the job, its exit code and the one sentence about it. Pure: times go in, a
// cause comes out.
//
// FirstCause lives as long as the job. It collects failures from the first one on for a short
// settle window, because reports of different nodes overtake each other; then it names the earliest
// one and never changes its mind. Failures closer to each other than their clock errors cannot be
// ordered by time: there the class decides (a crash explains its peers' errors, not the other way
// round); those of one node have one clock and are ordered by it. A worker of the runtime that lost
// a peer (exit 71), or saved and ended with the others because one of them was told to (143, 130),
// is the cause only where nothing else failed in the whole window; a rank that had ended with 0
// while the others still counted on it is named in its stead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"

namespace hvd {

enum class CauseKind {
  kExited,         // value: exit code, not 0
  kSignalled,      // value: signal
  kFailedToStart,  // value: errno; stage
  kLeftEarly,      // ended with 0 and was missed by the others; value: the code of who missed it
  kNodeLost,       // text: "its connection ended", "no heartbeat for 15 s"
  kNodeStopped,    // by somebody else than hvdrun; text: by whom
  kStartFailed,    // text: every failing node with its reason; code
  kTimeout,        // --timeout passed; limit
  kStartTimeout,   // --start-timeout passed; text: pending nodes with their phases; limit
  kExitTimeout,    // --exit-timeout passed after a first exit 0; text: ranks still running; limit
  kUserSignal,     // value: signal sent to hvdrun
  kRegistration,   // ranks do not fit together or did not come; text, details; code
  kStalled,        // ranks keep the others waiting; text; rank: the one to blame; code
  kStdoutGone,     // hvdrun's stdout cannot be written; value: errno, EPIPE: its reader has gone
};

inline constexpr std::uint32_t kNoNode = UINT32_MAX;

// The codes with which a worker of the runtime says the same.
inline constexpr auto kStalledCode = static_cast<ExitCode>(72);
inline constexpr auto kMismatchCode = static_cast<ExitCode>(73);

struct Cause {
  CauseKind kind = CauseKind::kExited;
  std::uint32_t rank = 0;
  std::uint32_t node = kNoNode;  // kNoNode: the launcher's own event
  std::string host;              // label of the node
  std::int32_t pid = 0;
  int value = 0;
  hvdrun::v1::SpawnStage stage = hvdrun::v1::SPAWN_STAGE_UNSPECIFIED;
  bool core_dumped = false;
  std::string core_pattern;  // of its node, if a core was dumped
  bool signal_was_ours = false;
  bool stopped = false;  // ended after its node had begun our stop: never the cause
  Nanos time{0};         // on the launcher's CLOCK_BOOTTIME axis
  Nanos clock_error{0};  // how far off `time` may be
  Nanos limit{0};        // the option's value, for time-outs
  ExitCode code = ExitCode::kInfrastructure;  // of kStartFailed, kRegistration, kStalled
  std::string text;
  std::vector<std::string> details;  // lines for a person, shown before the sentence
  std::string error_file;            // what the worker left in TORCHELASTIC_ERROR_FILE
  std::string mpi_end;               // how it left MPI, where that is the failure
  int received_signal = 0;           // and the signal that it names there
  bool uses_runtime = false;         // a worker of the runtime
  hvdrun::v1::OomFacts oom;          // the kernel's counters, of a rank that SIGKILL ended
  std::string oom_proof;             // what proves that memory was out; empty: nothing does
  std::string no_oom_text;           // of a SIGKILL without proof: where was looked for one
  std::vector<std::string> xids;     // errors that the node's GPU driver has logged
};

[[nodiscard]] bool is_of_rank(const Cause& cause);
// Of kStdoutGone: nobody reads it any more, rather than that it cannot be written.
[[nodiscard]] bool is_reader_gone(const Cause& cause);
// Whether such a signal comes from a person or a program, rather than from what the process did.
[[nodiscard]] bool is_sent_by_somebody(int signal);

// The cause in a worker's exit report; nullopt for exit 0. `time` and `clock_error` are the
// report's time mapped to the launcher's axis.
[[nodiscard]] std::optional<Cause> cause_of(const hvdrun::v1::ExitReport& report,
                                            std::uint32_t node, std::string host, Nanos time,
                                            Nanos clock_error);

// What a rank's end means beside the first cause.
enum class RankEnd {
  kSucceeded,  // with 0 by itself
  kStopped,    // of our stop: by its signal, or after it with 0 or 128 and the signal: it saved
  kFailed,     // by itself
};
[[nodiscard]] RankEnd rank_end(const hvdrun::v1::ExitReport& report, int stop_signal);

struct NodeFailure {
  std::string host;
  Error error;
};
// One cause for all nodes that could not be started. Its code is that of the first definite error;
// only if every node ran out of time it is the start time-out's.
[[nodiscard]] Cause start_failure(const std::vector<NodeFailure>& failures, Nanos now);

// 0 for no cause. The codes are those of docs/ARCHITECTURE.md, "Exit codes".
[[nodiscard]] int exit_code(const Cause* cause);

// Whether the ranks that are left cannot go on together, not even to save: a rank is lost or does
// not fit. A stop that the user or a limit wants, and a rank that has ended because it was told to
// (143), leave them whole.
[[nodiscard]] bool is_job_broken(const Cause& cause);

// What maps the launcher's boottime axis to what a user reads.
struct JobClock {
  Nanos start{0};            // of the workers, boottime; 0: they were never started
  Nanos realtime_offset{0};  // realtime minus boottime
};
// "rank 2 (node1, pid 4711) exited with code 3 at 16:05:59.123, 12 s after the start"; no full
// stop.
[[nodiscard]] std::string sentence(const Cause& cause, const JobClock& clock);

// One word for programs: "exited", "signalled", "node_lost", ...
[[nodiscard]] const char* class_name(CauseKind kind);

// "SIGSEGV"; "signal 34" where there is no name.
[[nodiscard]] std::string signal_name(int signal);

class FirstCause {
 public:
  static constexpr Nanos kSettle = std::chrono::milliseconds(500);

  explicit FirstCause(std::uint32_t num_nodes, Nanos settle = kSettle);

  // A failure. The first one that counts opens the settle window at `now`. Returns whether it
  // counts as a candidate: what a stopped rank does and what comes after the decision does not.
  bool add(Cause cause, Nanos now);

  // A worker of the runtime has ended with 0 while others may still count on it. Not a failure by
  // itself: see kLeftEarly.
  void add_early_end(Cause cause);

  // The node has told everything it knew after the window was opened (its stream is ordered: the
  // answer to a heartbeat sent since then), or it will never tell. Before the window: no effect.
  void node_answered(std::uint32_t node);

  // Names the cause if the window is over; true once decided.
  bool decide(Nanos now);
  // Names the cause now, if there is any candidate: the job is over.
  void decide_at_once();

  // When decide() is due at the latest; nullopt: nothing has failed, or it is decided.
  [[nodiscard]] std::optional<Nanos> deadline() const;
  [[nodiscard]] bool is_open() const { return !candidates_.empty() && !cause_; }
  [[nodiscard]] const Cause* cause() const { return cause_ ? &*cause_ : nullptr; }
  // Only workers that follow another one have ended so far, and whom they follow may still be
  // dying: nobody is to be stopped, or told a reason, before the cause is known.
  [[nodiscard]] bool is_waiting_for_another() const;
  // The likeliest cause by now; nullopt: nothing has failed.
  [[nodiscard]] std::optional<Cause> likeliest() const;

 private:
  [[nodiscard]] bool is_settled() const;
  [[nodiscard]] bool has_followers_only() const;

  const Nanos settle_;
  std::vector<bool> answered_;
  std::vector<Cause> candidates_;
  std::vector<Cause> early_ends_;
  Nanos opened_{0};
  std::optional<Cause> cause_;
};

}  // namespace hvd
