// One scrape of Prometheus is one look at the agent: its questions are asked when the scrape comes,
// all of them together within five seconds. An agent that is away is a metric, and one line of the
// log when it goes and when it is back. Thread: any of the HTTP server's; two scrapes may run at
// once.
#pragma once

#include <prometheus/collectable.h>

#include <mutex>
#include <string>
#include <vector>

#include "exporter/agent_metrics.h"

namespace hvd {

class AgentScrape : public prometheus::Collectable {
 public:
  explicit AgentScrape(std::string socket) : socket_(std::move(socket)) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  [[nodiscard]] AgentAnswers ask() const;
  void tell_change(const std::string& why_away) const;

  const std::string socket_;
  mutable std::mutex mutex_;
  mutable std::string told_;  // GUARDED_BY(mutex_): why the agent is away; empty: it is not
};

}  // namespace hvd
