// Starts one worker: pipes, clone, set-up of the child in a fixed order, exec. The order and the
// rule that only async-signal-safe calls stand between clone and exec are the whole point of this
// file. The child's failure comes back as {stage, errno} over a close-on-exec pipe; end of file
// there means that it has been executed.
#pragma once

#include "agent/shim/worker.h"
#include "base/status.h"
#include "hvdrun/v1/types.pb.h"

namespace hvd {

// The worker's PMI descriptor, where it has one: the next after its standard streams.
inline constexpr int kPmiDescriptor = 3;

// Called once before the first start, after the shim has closed what it inherited: makes sure that
// descriptors 0-2 are taken, so that no pipe lands there.
void occupy_standard_descriptors();

// Size of each worker pipe, such that all of a node's stay well under the kernel's limit for a
// user's pipes (64 MiB); beyond it every new pipe of that user shrinks to two pages.
[[nodiscard]] int choose_pipe_bytes(int num_workers);

// Fills the worker's pid and descriptors. `dev_null` is the child's stdin, unless the spec wants a
// pipe. `cgroup` is the folder in which the child is born; -1: ours. All signals must be blocked in
// the caller, so that one sent to the child before its exec is kept for it.
[[nodiscard]] tl::expected<void, SpawnFailure> start_worker(Worker& worker,
                                                            const hvdrun::v1::WorkerSpec& spec,
                                                            int dev_null, int pipe_bytes,
                                                            int cgroup = -1);

// What the status pipe says now.
enum class SetUp { kUnderWay, kExecuted, kFailed };
[[nodiscard]] SetUp read_set_up(int status_fd, SpawnFailure& failure);

}  // namespace hvd
