#include "launcher/attempts.h"

#include <utility>

#include "base/loop.h"
#include "launcher/restart.h"

namespace hvd {
namespace {

Outcome run_attempt(const Options& options, std::optional<Plan> plan,
                    const Job::Surroundings& surroundings, const AgentImage& agent) {
  Outcome outcome;
  Loop loop;
  Job job(loop, options, std::move(plan), surroundings, agent);
  boost::asio::co_spawn(
      loop, [&]() -> Task<void> { outcome.code = co_await job.run(); }, boost::asio::detached);
  loop.run();
  outcome.fatal_signal = job.fatal_signal();
  return outcome;
}

class Attempts {
 public:
  Attempts(Options options, Job::Surroundings surroundings, AgentImage agent)
      : options_(std::move(options)),
        surroundings_(std::move(surroundings)),
        agent_(std::move(agent)),
        restarts_(options_.restarts),
        signals_(options_.signals.forwarded) {
    surroundings_.signals = &signals_;
    surroundings_.on_failed = [this](const AttemptEnd& end) {
      end_ = end;
      next_ = restarts_.after(end);
      return next_;
    };
  }

  Outcome run(std::optional<Plan> plan) {
    while (true) {
      next_ = {};
      const Outcome outcome = run_attempt(options_, std::move(plan), surroundings_, agent_);
      if (outcome.fatal_signal != 0 || !next_.is_on) return outcome;
      prepare_next();
      plan.reset();
      if (!can_plan_without_hellos(options_.hosts, options_.np, options_.rank_order)) continue;
      auto made =
          make_plan(options_.hosts, options_.np, options_.hosts_source, options_.rank_order);
      if (!made) return {.error = made.error()};
      plan = std::move(*made);
    }
  }

 private:
  void prepare_next() {
    options_.hosts = next_.hosts;
    if (end_.num_ranks > 0) options_.np = end_.num_ranks;
    surroundings_.earlier_attempts.push_back(end_.sentence);
    surroundings_.pause = next_.pause;
  }

  Options options_;
  Job::Surroundings surroundings_;
  const AgentImage agent_;
  Restarts restarts_;
  const SignalPipe signals_;
  AttemptEnd end_;
  Restarts::Decision next_;
};

}  // namespace

Outcome run_attempts(Options options, std::optional<Plan> plan, Job::Surroundings surroundings,
                     AgentImage agent) {
  return Attempts(std::move(options), std::move(surroundings), std::move(agent))
      .run(std::move(plan));
}

}  // namespace hvd
