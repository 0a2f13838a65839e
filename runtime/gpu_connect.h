// The communicator between the GPUs: rank 0 makes NCCL's unique id and leaves it in the rendezvous,
// under a name that holds the generation and the communicator's number, so that an id serves one
// communicator of one generation only. A build without CUDA answers with an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "hvdrun/communicator.h"
#include "hvdrun/place.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"
#include "runtime/tcp_rendezvous.h"

namespace hvd {

// What the registration says of the GPU and of CUDA.
[[nodiscard]] Result<void> add_gpu_facts(int device, hvdrun::v1::Registration& facts);

struct GpuConnect {
  Place place;
  int device = 0;
  std::uint32_t generation = 0;
  int number = 0;  // of the communicator, the same on all ranks
  std::chrono::milliseconds timeout{0};
};
// By every rank. on_failure: on a thread of the communicator, once at most.
[[nodiscard]] Result<std::unique_ptr<Communicator>> connect_gpus(
    TcpRendezvous& rendezvous, const GpuConnect& settings,
    std::function<void(const CommunicatorFailure&)> on_failure);

}  // namespace hvd
