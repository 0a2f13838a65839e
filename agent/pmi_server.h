// What a node's agent answers to the PMI-1 commands of its ranks: the state of each of them and the
// key-value space that they share. Pure: bytes go in, bytes for ranks come out.
//
// A rank: silent -> open (init) -> closed (finalize). What it puts is seen by the ranks of this
// node at once and by all others after the next barrier: when every rank of the node is in it, the
// node's puts go out together (PmiStep::fence), and take_fence() with what the other nodes have put
// lets them go on. So a get is answered here and never waits: a key that nobody had put before the
// barrier is none. A key is written once; the same value again is fine.
//
// Limits, those that Hydra tells its clients: 64 bytes of key, 1024 of value; kMaxBytes of all keys
// and values that this node holds, kMaxFenceBytes of what it puts between two barriers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/pmi_line.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/v1.h"

namespace hvd {

// Goes to a rank. Each piece that a rank sends is answered with one of these at least, if only with
// no bytes: its next piece is read only then.
struct PmiReply {
  std::uint32_t rank = 0;
  std::string data;
  bool close = false;  // the rank reads end of file behind it
  bool kill = false;   // it has called MPI_Abort, and waits for its end
};

struct PmiStep {
  std::vector<PmiReply> replies;
  std::optional<v1::PmiPuts> fence;   // all ranks of the node wait for the others
  std::vector<std::string> problems;  // a sentence each, for the user
};

class PmiServer {
 public:
  static constexpr std::size_t kMaxKey = 64;
  static constexpr std::size_t kMaxValue = 1024;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
  static constexpr std::size_t kMaxFenceBytes = std::size_t{4} << 20U;

  // `ranks`: those of this node.
  PmiServer(const v1::PmiWorld& world, std::string_view job_id,
            const std::vector<std::uint32_t>& ranks);

  [[nodiscard]] PmiStep take(std::uint32_t rank, std::string_view bytes);

  // All nodes have come to the barrier; what the others have put.
  [[nodiscard]] PmiStep take_fence(const v1::PmiPuts& others);
  // The barrier cannot end: its ranks read end of file, which their library takes for an error.
  [[nodiscard]] PmiStep fail_fence(const std::string& why);

  // How a rank left MPI that has ended, where that is a failure of its own: it called MPI_Abort, or
  // ended between MPI_Init and MPI_Finalize. Empty: neither.
  [[nodiscard]] std::string ending(std::uint32_t rank) const;
  // The exit code for a rank that has called MPI_Abort: as given, but never success.
  [[nodiscard]] std::optional<int> abort_code(std::uint32_t rank) const;

 private:
  enum class Phase { kSilent, kOpen, kFinal };
  struct Rank {
    PmiLines lines;
    Phase phase = Phase::kSilent;
    bool is_in_barrier = false;
    bool is_closed = false;
    std::uint32_t num_spawned = 0;  // programs of a spawn that have been told so far
    std::optional<int> abort_code;
  };
  using Answer = std::string;  // a line without its newline; empty: none now

  Answer answer(Rank& rank, const PmiCommand& command, PmiStep& step, std::uint32_t number);
  Answer answer_init(Rank& rank, const PmiCommand& command) const;
  Answer answer_query(const PmiCommand& command) const;
  Answer answer_put(const PmiCommand& command);
  Answer answer_get(const PmiCommand& command) const;
  static Answer answer_spawn(Rank& rank, const PmiCommand& command);
  bool enter_barrier(Rank& rank, PmiStep& step);
  void close(std::uint32_t number, Rank& rank, const std::string& why, PmiStep& step);
  [[nodiscard]] bool is_ours(const PmiCommand& command) const;
  void keep(const std::string& key, const std::string& value);

  const std::uint32_t size_;
  const std::string kvs_name_;
  std::map<std::uint32_t, Rank> ranks_;
  std::size_t num_in_barrier_ = 0;
  std::unordered_map<std::string, std::string> values_;
  std::size_t num_bytes_ = 0;  // of values_
  v1::PmiPuts pending_;        // not yet told to the other nodes
  std::size_t num_pending_bytes_ = 0;
};

}  // namespace hvd
