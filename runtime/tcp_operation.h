// One collective operation in progress: its time limit, and the loop that moves its streams over
// the data connections so that sending, receiving and (in the streams) reducing overlap. Each
// stream begins with a header that says which operation its sender is in; a receiver that is in
// another one fails with both names.
//
// Shortly before the limit it asks the others whom they wait for (tcp_blame.h) and so names the one
// that holds everybody up. Lives for one call of the communicator, on the caller's thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hvdrun/communicator.h"
#include "runtime/tcp_mesh.h"
#include "runtime/tcp_stream.h"

namespace hvd {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kFinalize,
};
[[nodiscard]] std::string_view name_of(CollectiveKind kind);

// Travels in front of each stream; equal on both sides.
struct OperationHeader {
  std::uint64_t sequence = 0;  // of the communicator's operations
  std::uint64_t count = 0;     // elements
  std::int32_t root = 0;
  std::uint16_t part = 0;  // step of the algorithm
  CollectiveKind kind = CollectiveKind::kBarrier;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  std::uint8_t reserved[7] = {};
};
static_assert(sizeof(OperationHeader) == 32);

// "all-reduce (sum) of 100 float32, call 7".
[[nodiscard]] std::string describe(const OperationHeader& header);

struct SendTo {
  int peer = -1;
  Outgoing* stream = nullptr;
};
struct ReceiveFrom {
  int peer = -1;
  Incoming* stream = nullptr;
};

class TcpOperation {
 public:
  // mesh: not owned, outlives this.
  TcpOperation(TcpMesh* mesh, const OperationHeader& header, std::chrono::milliseconds timeout);

  // Moves all streams to their ends. part: which step of the algorithm this is, equal on both
  // sides. False where the mesh has failed. The time limit is that of the whole operation.
  [[nodiscard]] bool run(std::uint16_t part, std::span<const ReceiveFrom> receivers,
                         std::span<const SendTo> senders);

 private:
  // One stream on its socket. is_blocked: the socket would not take or give more.
  template <typename Stream>
  struct Flow {
    int peer = -1;
    int socket = -1;
    Stream* stream = nullptr;
    std::size_t header_done = 0;
    bool is_blocked = false;
    OperationHeader header;
  };
  using InFlow = Flow<Incoming>;
  using OutFlow = Flow<Outgoing>;

  void begin(std::uint16_t part, std::span<const ReceiveFrom> receivers,
             std::span<const SendTo> senders);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool move();
  [[nodiscard]] bool receive(InFlow& flow);
  void take(InFlow& flow, std::size_t bytes);
  [[nodiscard]] bool send(OutFlow& flow);
  void lose(int peer);
  void wait();
  void watch_time();
  void give_up();
  [[nodiscard]] int awaited() const;

  TcpMesh* const mesh_;
  OperationHeader header_;
  const std::chrono::milliseconds timeout_;
  const SteadyTime deadline_;
  const SteadyTime ask_time_;
  bool has_asked_ = false;

  std::vector<InFlow> in_;
  std::vector<OutFlow> out_;
  std::vector<pollfd> polled_;  // of wait()
};

}  // namespace hvd
