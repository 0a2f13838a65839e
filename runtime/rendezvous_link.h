// A worker's way to the job's key-value store: a gRPC client on the unix socket that the node's
// agent keeps for the job's workers (its path is in HVDRUN_RENDEZVOUS); the agent relays to the
// launcher.
//
// Lifecycle: opened once by a worker, used for small values at the start of a job and of a
// generation (an NCCL id, addresses, a barrier). Opening does not connect; the first call does.
// Threads: any; every call blocks its caller until its answer or its deadline.
//
// Errors are one sentence. At a deadline their code is kTimeout, and the text names what is missing
// ("31 of 32 ranks came, missing: 7") where the store could tell. may_retry: the connection or the
// launcher was not there; the same call may be made again. Values are secrets of the job: they
// appear in no error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

class RendezvousLink {
 public:
  using Timeout = std::chrono::milliseconds;

  // `socket_path`: of the agent's unix socket.
  [[nodiscard]] static Result<RendezvousLink> open(const std::string& socket_path);
  // Of a job without agents: rank 0 serves the store. It may come later than this; every call waits
  // for it. job: which one this rank belongs to (job_identity.h); another's server refuses it.
  [[nodiscard]] static RendezvousLink open_tcp(const std::string& host, int port, std::string job);
  // The path from HVDRUN_RENDEZVOUS; an error where the process is no worker of hvdrun.
  [[nodiscard]] static Result<RendezvousLink> open_from_environment();

  RendezvousLink(RendezvousLink&&) noexcept;
  RendezvousLink& operator=(RendezvousLink&&) noexcept;
  ~RendezvousLink();

  // Sets the key of a generation, once: the same value again is fine, another is an error. Keys: 1
  // to 256 bytes; values: at most 1 MiB, any bytes.
  [[nodiscard]] Result<void> put(const std::string& key, std::string value,
                                 std::uint32_t generation, Timeout timeout);

  // Waits until the key is there.
  [[nodiscard]] Result<std::string> get(const std::string& key, std::uint32_t generation,
                                        Timeout timeout);

  // Returns when `size` different ranks have called it. A rank that fails here must not go on: the
  // others do not pass without it.
  [[nodiscard]] Result<void> barrier(const std::string& name, std::uint32_t generation,
                                     std::uint32_t rank, std::uint32_t size, Timeout timeout);

  // Tells what this rank is and returns when all ranks have done so and fit together, with what
  // differs and may (a headline each, then lines of a table). Ranks that do not fit together: one
  // line about it, the same on all of them, with the exit code of a mismatch (worker_exit.h).
  [[nodiscard]] Result<std::vector<std::string>> register_worker(
      const hvdrun::v1::Registration& registration, Timeout timeout);

 private:
  struct Channel;
  explicit RendezvousLink(std::unique_ptr<Channel> channel);

  std::unique_ptr<Channel> channel_;
};

}  // namespace hvd
