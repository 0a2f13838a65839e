// What an agent that serves answers to a control line: "MARKER ok JSON" or "MARKER error TEXT". It
// comes from another machine: whatever it is, here it becomes a value or a reason. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// Why one node has no answer for us. `why` may hold any bytes of the node's.
struct ControlFailure {
  enum class Kind { kUnreachable, kRefused, kFaulty };
  Kind kind = Kind::kUnreachable;
  std::string why;
};

template <typename T>
using Answer = tl::expected<T, ControlFailure>;

// One job's part on one node.
struct JobStatus {
  std::string id;           // 32 hex digits
  std::uint64_t index = 0;  // of the node within the job
  std::string client;       // whose certificate asked for it
  std::string user;         // whom it runs as
  std::string from;         // the launcher's address
  std::string state;        // "running", "waiting"
  std::int64_t since = 0;   // seconds since 1970
  std::string gpus;         // "0,1", "all"; empty: none
  std::string unit;         // of systemd; empty: none
};

struct NodeStatus {
  std::string node;  // as it calls itself
  std::string version;
  std::int64_t started = 0;  // seconds since 1970
  std::string draining;      // why it takes no jobs; empty: it takes them
  std::uint64_t max_jobs = 0;
  std::uint64_t num_gpus = 0;
  std::vector<JobStatus> jobs;
};

// `line` without its end: the JSON of an "ok". "refused: TEXT" is what strangers are told, before
// any line of theirs is read.
[[nodiscard]] Answer<std::string> take_answer(std::string_view line, std::string_view marker);

// What is missing counts as empty, but for "node" and "jobs"; unknown keys are passed over.
[[nodiscard]] Answer<NodeStatus> parse_status(std::string_view json);
[[nodiscard]] Answer<std::uint64_t> parse_stopped(std::string_view json);  // how many jobs
[[nodiscard]] Answer<std::string> parse_draining(std::string_view json);   // NodeStatus::draining

}  // namespace hvd
