// The line with which somebody who has shown who he is says what he wants of an agent that serves:
//   MARK job --job ID --node N --key K [--gpus LIST] [--user NAME] [words for the agent]
//   MARK resume --job ID --node N --key K
//   MARK reap --job ID --node N [words for the reap]
//   MARK ctl VERB [WORDS]
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/arguments.h"
#include "agent/gpu_claim.h"
#include "base/status.h"

namespace hvd {

struct FrontLine {
  enum class Kind { kJob, kResume, kReap, kControl };
  Kind kind = Kind::kJob;
  std::string marker;
  std::string job_id;
  std::uint32_t node = 0;
  std::string key;                 // 64 hexadecimal digits: who has it is the job's launcher
  GpuClaim gpus;                   // job
  std::string user;                // job: as which local user; empty: whom the policy says
  std::vector<std::string> words;  // more for the agent or the reap; the verb of ctl and its words
};

// `line` without its end; at most 4096 bytes. Errors say what is wrong with it, for the answer.
[[nodiscard]] Result<FrontLine> parse_front_line(std::string_view line);

// The first word, for the answer to a line that is none; empty if it is no marker.
[[nodiscard]] std::string marker_of(std::string_view line);

// Whether its second word is "ctl". Pure.
[[nodiscard]] bool is_control_line(std::string_view line);

}  // namespace hvd
