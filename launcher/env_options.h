// The options about the environment of the processes: what the user asks for. Only the files of
// --env-file are looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

struct Occurrence;

enum class CoreDumps : std::uint8_t {
  kAll,
  kRank0,
  kNone
};  // in the order of the option's choices

struct EnvRequest {
  std::vector<EnvRule> rules;     // --env-allow and --env-deny, in order
  EnvList from_files;             // --env-file
  EnvList given;                  // -x
  bool is_torchelastic = false;   // torchrun's mark as well
  std::string bind;               // "numa", "core"; empty: none
  bool reports_bindings = false;  // one line for each rank
  CoreDumps core_dumps = CoreDumps::kAll;
  bool answers_pmi = true;        // to programs built with MPICH
  std::string local_rank_option;  // "--local-rank": the command gets --local-rank=N; empty: no

  // What the user gives to every process: the files, over them -x.
  [[nodiscard]] EnvList user_env() const;
};

// `own` is hvdrun's environment: the values of names alone and of patterns. Those that it lacks are
// left out and told in `notes`.
[[nodiscard]] Result<void> set_environment_option(EnvRequest& request, const Occurrence& it,
                                                  const EnvList& own,
                                                  std::vector<std::string>& notes);

}  // namespace hvd
