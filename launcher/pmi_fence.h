// The barrier at which the nodes of a job meet for PMI-1: each comes with what its ranks have put
// since the last one, and when the last has come all are told what the others have put. One message
// of each node and one to it, whatever the number of ranks. Pure; the job sends the answers. A
// fence that somebody never reaches has no answer: the job's end takes it away.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "hvdrun/v1/agent.pb.h"
#include "proto/rendezvous_store.h"
#include "proto/v1.h"

namespace hvd {

class PmiFence {
 public:
  // What all nodes together may put between two barriers: an answer must fit one message.
  static constexpr std::size_t kMaxBytes = std::size_t{12} << 20U;

  // A node that has ranks, before the first of them can have said anything.
  void expect(std::uint32_t node) { nodes_.insert(node); }

  [[nodiscard]] StoreAnswers take(std::uint32_t node, std::uint64_t id,
                                  const v1::StoreFence& fence);

 private:
  struct Arrival {
    std::uint64_t id = 0;
    std::string puts;
  };
  [[nodiscard]] StoreAnswers pass();

  std::set<std::uint32_t> nodes_;
  std::map<std::uint32_t, Arrival> arrived_;
  std::uint64_t num_passed_ = 0;
};

}  // namespace hvd
