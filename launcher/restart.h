// --max-restarts and --spare: whether a job that failed runs again as a whole, and where. Pure.
//
// Every attempt is a job of its own, with a new id, new agents and an empty store. A host that has
// failed twice is left out, one that may still run ranks of the attempt before at once, and one
// that could not be started as soon as there is a spare; a spare host takes its place, or the other
// hosts if they have enough slots. A host that has merely failed twice stays where nothing can take
// its place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launcher/hostlist.h"
#include "launcher/policy.h"
#include "launcher/restart_request.h"

namespace hvd {

// What the end of an attempt means for the next.
struct AttemptEnd {
  bool is_retryable = false;           // see is_retryable()
  std::vector<HostSpec> hosts{};       // with their slots where they are known
  std::uint32_t num_ranks = 0;         // 0: there was no plan yet
  std::set<std::string> failed{};      // labels of hosts that the failure came from
  bool has_not_started = false;        // some of these hosts could not be started at all
  std::set<std::string> unverified{};  // labels of hosts that may still run ranks of it
  std::string sentence{};              // of the first cause
};

// Of a rank or node; not of a user's wish, a time limit or what would be the same again: a command
// that cannot be executed, ranks that do not fit together, bad data. A node that cannot be started
// counts once an attempt has run, or where spare hosts are named.
[[nodiscard]] bool is_retryable(const Cause& cause, bool has_run_before, bool has_spares);

class Restarts {
 public:
  explicit Restarts(RestartRequest request);

  struct Decision {
    bool is_on = false;
    std::vector<HostSpec> hosts{};  // of the next attempt
    Nanos pause{};                  // before it: 1 s, then twice as long each time, 30 s at most
    std::string told{};             // for the user; empty: nothing
  };
  [[nodiscard]] Decision after(const AttemptEnd& end);

 private:
  [[nodiscard]] std::optional<std::vector<HostSpec>> with_spare(const std::vector<HostSpec>& hosts,
                                                                const std::string& label,
                                                                std::uint32_t num_ranks);

  RestartRequest request_;
  std::uint32_t count_ = 0;                  // restarts so far
  std::map<std::string, int> num_failures_;  // by label
};

}  // namespace hvd
