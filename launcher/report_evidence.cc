#include "launcher/report_evidence.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

// What stands behind "not sent by hvdrun" where nothing proves that memory was out.
std::string no_oom_text(const v1::OomFacts& facts, bool is_log_read) {
  if (facts.is_node_counted() && facts.node_kills() == 0) {
    return "the out-of-memory killer did not act on its node";
  }
  const bool is_group_read = facts.is_own() && facts.is_counted();
  if (is_group_read || is_log_read) {
    return fmt::format(
        "no sign of the out-of-memory killer in {}{}{}", is_group_read ? "its control group" : "",
        is_group_read && is_log_read ? " or " : "", is_log_read ? "the kernel's log" : "");
  }
  if (facts.is_node_counted()) {
    return fmt::format(
        "the out-of-memory killer ended {} on its node meanwhile, whom cannot be told there",
        fmt::format("{} {}", facts.node_kills(),
                    facts.node_kills() == 1 ? "process" : "processes"));
  }
  return "whether memory was out cannot be seen on its node";
}

}  // namespace

void KernelNotes::begin(std::string problem) {
  is_begun_ = true;
  problem_ = std::move(problem);
}

void KernelNotes::take(const v1::KernelFacts& facts) {
  for (const v1::KernelFact& fact : facts.facts()) {
    const bool is_known = std::any_of(facts_.begin(), facts_.end(), [&fact](const auto& known) {
      return known.text() == fact.text();
    });
    if (!is_known && facts_.size() < kMaxFacts) facts_.push_back(fact);
  }
}

std::string KernelNotes::out_of_memory_line(int pid) const {
  for (const v1::KernelFact& fact : facts_) {
    const bool is_kill = fact.kind() == v1::KernelFact::KIND_OUT_OF_MEMORY;
    if (is_kill && pid > 0 && fact.pid() == pid) return fact.text();
  }
  return {};
}

std::vector<std::string> KernelNotes::xids() const {
  std::vector<std::string> texts;
  for (const v1::KernelFact& fact : facts_) {
    if (fact.kind() == v1::KernelFact::KIND_XID) texts.push_back(fact.text());
  }
  return texts;
}

std::vector<std::string> KernelNotes::lines() const {
  std::vector<std::string> texts;
  for (const v1::KernelFact& fact : facts_) texts.push_back(fact.text());
  return texts;
}

std::string oom_proof(const v1::OomFacts& facts) {
  if (!facts.is_own() || !facts.is_counted() || facts.kills() == 0) return {};
  return fmt::format("oom_kill in memory.events of {} rose by {}", facts.cgroup(), facts.kills());
}

void add_evidence(Cause& cause, const KernelNotes& notes) {
  if (!is_of_rank(cause)) return;
  cause.xids = notes.xids();
  const bool is_foreign_kill =
      cause.kind == CauseKind::kSignalled && cause.value == SIGKILL && !cause.signal_was_ours;
  if (!is_foreign_kill || !cause.oom_proof.empty()) return;
  const std::string line = notes.out_of_memory_line(cause.pid);
  if (line.empty()) {
    cause.no_oom_text = no_oom_text(cause.oom, notes.is_read());
  } else {
    cause.oom_proof = fmt::format("the kernel's log says \"{}\"", line);
  }
}

}  // namespace hvd
