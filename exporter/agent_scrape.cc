#include "exporter/agent_scrape.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "exporter/agent_question.h"

namespace hvd {
namespace {

constexpr auto kDeadline = std::chrono::seconds(5);

// The reason goes to `why`.
std::optional<std::string> answer_of(Result<std::string> result, std::string& why) {
  if (result) return std::move(*result);
  why = result.error().message;
  return std::nullopt;
}

}  // namespace

std::vector<prometheus::MetricFamily> AgentScrape::Collect() const { return metrics_of(ask()); }

// The GPUs come last: nvidia-smi may take all the time there is, and the rest is known by then.
AgentAnswers AgentScrape::ask() const {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  AgentAnswers answers;
  std::string why_away;
  std::string why_not;  // of one answer alone; the agent's own log has it
  answers.status = answer_of(ask_agent(socket_, "status", deadline), why_away);
  if (answers.status) {
    answers.counters = answer_of(ask_agent(socket_, "counters", deadline), why_not);
    answers.gpus = answer_of(ask_agent(socket_, "gpus", deadline), why_not);
  }
  tell_change(why_away);
  return answers;
}

void AgentScrape::tell_change(const std::string& why_away) const {
  const std::lock_guard lock(mutex_);
  if (why_away == told_) return;
  if (why_away.empty()) {
    log(LogLevel::kInfo, "the agent at {} answers again", socket_);
  } else {
    log(LogLevel::kWarning, "the agent does not answer: {}", why_away);
  }
  told_ = why_away;
}

}  // namespace hvd
