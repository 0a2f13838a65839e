// Entry of `hvd-agent shim`: one single-threaded process per job and node.
#pragma once

namespace hvd {

// Serves the agent at the other end of `socket_fd` (a connected unix stream socket, taken over)
// until the job is over, then removes the job's folder. Call it first in a process that has no
// other thread; it closes every other descriptor from 3 on, turns 0-2 into /dev/null, blocks all
// signals, starts a session of its own and becomes a sub-reaper. Returns the exit status for main:
// 0, or 125 if the machine has no descriptors left for its loop.
//
// What the agent gets per rank of the spawn: Started unless the start failed; exactly one
// ExitReport unless the rank outlived SIGKILL and is among the survivors; for each of stdout and
// stderr chunks that end with one `eof`. Then one Finished. All that only while the socket is open.
int run_shim(int socket_fd);

}  // namespace hvd
