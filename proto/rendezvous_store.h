// The job's key-value store and its barriers, as the workers see them through their agents. Pure:
// requests and the time go in, replies come out; the job sends them and calls expire() at
// next_deadline().
//
// A key is written once in a generation; the same value again is fine, another is a conflict. A get
// waits for its key, a barrier for its ranks, each until its own deadline. A generation is a key
// space of its own; when the job moves on, everything older is refused. Values are secrets of the
// job (NCCL ids): they never appear in a text or a log.
//
// Limits: kMaxKey and kMaxValue bytes, kMaxKeys keys and kMaxWaiting waiting requests in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/v1.h"

namespace hvd {

// Whom a reply goes to: the node's Control stream; the id stands in the reply.
struct StoreAnswer {
  std::uint32_t node = 0;
  hvdrun::v1::StoreReply reply;
};
using StoreAnswers = std::vector<StoreAnswer>;

class RendezvousStore {
 public:
  static constexpr std::size_t kMaxKey = 256;
  static constexpr std::size_t kMaxValue = 1024 * 1024;
  static constexpr std::size_t kMaxKeys = 4096;
  static constexpr std::size_t kMaxWaiting = 65536;

  // Everything that can be answered because of this request, its own answer included. A cancelled
  // request is forgotten without an answer.
  [[nodiscard]] StoreAnswers handle(std::uint32_t node, const hvdrun::v1::StoreRequest& request,
                                    SteadyTime now);

  // Time-outs that are due; a barrier's text names the missing ranks.
  [[nodiscard]] StoreAnswers expire(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  // The node has gone: its requests are forgotten, its values stay.
  void forget_node(std::uint32_t node);

  // Moves to a newer generation: older keys go, older requests end as conflicts.
  [[nodiscard]] StoreAnswers advance(std::uint32_t generation);

  // The job is ending: every request ends now, and so does each later one.
  [[nodiscard]] StoreAnswers cancel_all(std::string reason);

 private:
  using RequestId = std::pair<std::uint32_t, std::uint64_t>;  // node, id
  using Name = std::pair<std::uint32_t, std::string>;         // generation, key or barrier

  struct Waiting {
    Name name;
    SteadyTime deadline;
    std::optional<std::uint32_t> rank;  // of a barrier; a get has none
  };
  struct Barrier {
    std::uint32_t size = 0;
    std::map<std::uint32_t, RequestId> waiting;  // by rank
    std::set<std::uint32_t> came;                // also those whose deadline has passed
  };

  void put(RequestId id, const hvdrun::v1::StorePut& put, StoreAnswers& out);
  void get(RequestId id, const hvdrun::v1::StoreGet& get, SteadyTime now, StoreAnswers& out);
  void barrier(RequestId id, const hvdrun::v1::StoreBarrier& barrier, SteadyTime now,
               StoreAnswers& out);
  bool refuse(RequestId id, std::string_view what, const Name& name, StoreAnswers& out);
  void wait(RequestId id, Waiting waiting);
  void answer_getters(const Name& name, const std::string& value, StoreAnswers& out);
  void time_out(RequestId id, const Waiting& waiting, StoreAnswers& out);
  void leave_barrier(const Waiting& waiting);
  void forget(RequestId id);

  std::uint32_t generation_ = 0;
  std::optional<std::string> end_reason_;
  std::map<Name, std::string> values_;
  std::map<Name, Barrier> barriers_;
  std::map<RequestId, Waiting> waiting_;
  std::set<std::pair<SteadyTime, RequestId>> deadlines_;
};

}  // namespace hvd
