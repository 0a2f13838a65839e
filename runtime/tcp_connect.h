// Brings the ranks of a job together: each listens on a port of the kernel's choice, leaves its
// address in a rendezvous, dials the ranks below it and is dialled by those above; every connection
// proves the job's nonce first (tcp_handshake.h). Strangers are dropped and disturb nobody. When
// all are connected nobody listens any longer. Between ranks of one machine unix sockets carry the
// data: they cost a quarter less than TCP on loopback.
//
// Blocks its caller for at most `timeout`; no thread of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "hvdrun/communicator.h"
#include "runtime/tcp_rendezvous.h"

namespace hvd {

struct TcpSettings {
  int rank = 0;
  int size = 1;
  std::string listen_address = "127.0.0.1";  // numeric; the other ranks reach this one by it
  std::string host = "localhost";            // what errors call this rank's machine
  std::uint32_t generation = 0;              // of the job; ranks of another one are strangers
  bool has_local_sockets = true;  // unix sockets carry the data between ranks of one machine
  std::string nonce;              // a secret of the job's ranks, 16 bytes or more
};

// An error names each rank that did not come, or what is wrong with one that did. Its code is
// kTimeout where one did not come, that of WorkerExit::kPeerLost where one came and died.
[[nodiscard]] Result<std::unique_ptr<Communicator>> tcp_connect(TcpRendezvous& rendezvous,
                                                                const TcpSettings& settings,
                                                                std::chrono::milliseconds timeout);

}  // namespace hvd
