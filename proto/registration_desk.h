// Where the ranks of a job register: all of a generation are answered together, once the last one
// has come and they fit together, or at once if they do not. Pure: requests and the time go in,
// replies and an outcome come out. A ranks' own reply is one line; the table of a refusal and the
// warnings are for whoever keeps the desk, to be printed once.
//
// Lifecycle: as long as the job. A newer generation begins anew; an older one is refused. Thread:
// the owner's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/registration.h"
#include "proto/rendezvous_store.h"

namespace hvd {

class RegistrationDesk {
 public:
  static constexpr std::uint32_t kMaxRanks = 65536;

  // What the desk has decided, told once.
  struct Outcome {
    std::optional<RegistrationRefusal> refusal;
    bool is_timeout = false;            // of the refusal: ranks are missing
    std::vector<std::string> warnings;  // where all ranks were let in
  };

  // Everything that can be answered because of this one, its own answer included.
  [[nodiscard]] StoreAnswers take(std::uint32_t node, std::uint64_t id,
                                  const hvdrun::v1::StoreRegister& request, SteadyTime now);

  // The deadlines that have come: ranks are missing, and all that wait are told which.
  [[nodiscard]] StoreAnswers expire(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  // The process of this rank is gone, `how` says it ("ended with code 0"): if others wait for it,
  // nobody waits any more.
  [[nodiscard]] StoreAnswers rank_ended(std::uint32_t rank, const std::string& how);

  // The caller has gone; its rank is missing again while others wait.
  void cancel(std::uint32_t node, std::uint64_t id);
  void forget_node(std::uint32_t node);

  // The job is ending: every registration ends now, and so does each later one.
  [[nodiscard]] StoreAnswers cancel_all(std::string reason);

  // Where each rank runs, for the names of missing ones; may be empty.
  void set_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }

  // What is known of each rank's process, for the same: "pid 4711, stopped (T)" or nothing.
  void set_processes(std::function<std::string(std::uint32_t rank)> text_of) {
    process_text_ = std::move(text_of);
  }

  // What was decided since the last call.
  [[nodiscard]] std::optional<Outcome> take_outcome() { return std::exchange(outcome_, {}); }

  // When the ranks that came wanted to be done with their start; of the first one.
  [[nodiscard]] std::optional<SteadyTime> start_deadline() const { return start_deadline_; }

 private:
  enum class Phase { kOpen, kDone, kRefused };
  struct Place {
    hvdrun::v1::Registration registration;
    std::pair<std::uint32_t, std::uint64_t> id;  // node, request
    SteadyTime deadline;
    std::chrono::milliseconds limit;  // as the rank gave it
  };

  [[nodiscard]] bool begin(const hvdrun::v1::Registration& registration);
  [[nodiscard]] std::optional<RegistrationRefusal> check(
      const hvdrun::v1::Registration& registration) const;
  [[nodiscard]] StoreAnswers answer_late(std::uint32_t node, std::uint64_t id,
                                         const hvdrun::v1::Registration& registration) const;
  [[nodiscard]] bool waits_in_vain() const;
  void conclude(StoreAnswers& out);
  void refuse(RegistrationRefusal refusal, bool is_timeout, StoreAnswers& out);
  void answer_all(const hvdrun::v1::StoreReply& reply, StoreAnswers& out) const;
  [[nodiscard]] RegistrationRefusal late_refusal(std::chrono::milliseconds limit) const;
  [[nodiscard]] RegistrationRefusal ended_refusal() const;
  // Ranks that have not registered; all, or those that have ended.
  [[nodiscard]] std::string missing_text(bool only_ended) const;
  [[nodiscard]] std::string name_of(std::uint32_t rank) const;

  std::vector<std::string> hosts_;
  std::function<std::string(std::uint32_t rank)> process_text_;
  Phase phase_ = Phase::kOpen;
  std::uint32_t generation_ = 0;
  std::uint32_t size_ = 0;                 // 0: nobody has come
  std::map<std::uint32_t, Place> places_;  // by rank
  std::map<std::uint32_t, std::string> ended_;
  std::optional<SteadyTime> start_deadline_;
  std::optional<Outcome> outcome_;
  hvdrun::v1::StoreReply verdict_;  // of a generation that is done: for who comes late
  std::optional<std::string> end_reason_;
};

}  // namespace hvd
