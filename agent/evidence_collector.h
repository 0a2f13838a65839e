// What can be learnt of this node's ranks before they are stopped: one program for each rank, the
// user's hook or our own look at the kernel's files, a few at a time, each within its limit and all
// within one. Programs that hang are killed and told of; nothing waits for them.
//
// Lifecycle: one collection, once; the destructor kills what still runs and tells nothing. Thread:
// the loop's. on_done may destroy this.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/outside_program.h"
#include "base/limit_timer.h"
#include "base/loop.h"
#include "hvdrun/v1/vitals.pb.h"
#include "proto/worker_env.h"

namespace hvd {

class EvidenceCollector {
 public:
  static constexpr std::size_t kMaxAtOnce = 8;
  static constexpr std::size_t kMaxBytes = 64U << 10U;  // of each rank

  struct Place {
    EnvList env;  // of the programs; PATH finds them
    std::string cwd;
    std::string cgroup = {};  // the job's; empty: none
  };
  using PidOf = std::function<pid_t(std::uint32_t rank)>;  // 0: it does not run
  using OnRank = std::function<void(hvdrun::v1::RankEvidence)>;
  using OnDone = std::function<void()>;

  EvidenceCollector(Loop& loop, hvdrun::v1::CollectEvidence request, Place place);
  ~EvidenceCollector();
  EvidenceCollector(const EvidenceCollector&) = delete;
  EvidenceCollector& operator=(const EvidenceCollector&) = delete;

  void start(const PidOf& pid_of, OnRank on_rank, OnDone on_done);

  // Now: what still runs is killed and told with what it has said so far.
  void end(const std::string& why);

 private:
  struct Item;

  void fill();
  void begin(Item& item);
  void take(Item& item, std::string_view bytes);
  void finish(Item& item, std::string problem);

  Loop& loop_;
  const hvdrun::v1::CollectEvidence request_;
  const Place place_;
  OnRank on_rank_;
  OnDone on_done_;
  std::map<std::uint32_t, std::unique_ptr<Item>> items_;  // that are not finished
  std::deque<Item*> waiting_;
  std::size_t num_running_ = 0;
  LimitTimer limit_;  // of all
  bool is_filling_ = false;
};

// The words with {pid} replaced. Pure.
[[nodiscard]] std::vector<std::string> words_for_pid(const hvdrun::v1::CollectEvidence::Target& it,
                                                     pid_t pid);

}  // namespace hvd
