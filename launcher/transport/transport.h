// How a byte stream to a node's agent comes to be. Four kinds (command, local, ssh, tls) stand
// behind one interface: open() reaches the node, places the agent if it is missing, starts it and
// hands over a connected non-blocking socket on which the next byte is the agent's HTTP/2.
//
// Lifecycle: a Transport is made once for a run and outlives its connections. Thread: the loop's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proto/tls_files.h"

namespace hvd {

// Start phases in order, as the status line names them.
enum class Phase {
  kWaiting,
  kResolve,
  kConnect,
  kAuthenticate,
  kTurn,  // behind other jobs that have what this one wants
  kPlaceAgent,
  kStartAgent,
  kHello,
  kStage,
  kFabric,
  kSpawn,
  kRunning,
};
[[nodiscard]] const char* phase_name(Phase phase);  // "authenticate"

struct Target {
  std::uint32_t node = 0;  // node index
  std::string host;
  std::string user;        // empty: default
  std::uint16_t port = 0;  // 0: default
  std::string key{};       // ssh identity file; empty: as configured
};

struct OpenRequest {
  Target target;
  SteadyTime deadline;  // of the whole start; each step ends by it
  // A host that has not taken the connection by then is given up (ssh, TLS).
  SteadyTime connect_by = SteadyTime::max();
  // What the agent is started with, besides its marker. Plain words (boot_script.h).
  std::vector<std::string> agent_words = {"--stdio"};
  std::function<void(Phase)> on_phase;  // called on the loop's thread
};

// A running agent's stream. Destruction closes it without blocking and ends helper processes.
class Connection {
 public:
  virtual ~Connection() = default;

  // The socket for gRPC; valid once.
  [[nodiscard]] virtual UniqueFd take_stream() = 0;

  // What the other side printed beside the stream: stderr, and noise before the agent was ready.
  // For the text of an error. At most 4 KiB.
  [[nodiscard]] virtual std::string diagnostics() const = 0;

  // Where the agent runs on the node, as it told: for -vv.
  [[nodiscard]] virtual std::string agent_path() const = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Errors name the host, the phase and the remedy. At the deadline the error's code is kTimeout.
  // Cancellation: closing everything is done by destroying the Transport after the loop has run
  // dry, or earlier by abort().
  [[nodiscard]] virtual Task<Result<std::unique_ptr<Connection>>> open(OpenRequest request) = 0;

  // Every open() under way ends soon with an error. Does not block.
  virtual void abort() = 0;
};

// The agent program that hvdrun carries: hvd-agent beside hvdrun. `sum` names its content and is
// part of the file's name on the node: the first 16 hex digits of the linker's build id (which
// costs one page to read), or of the SHA-256 of a program without one.
struct AgentImage {
  std::string path;
  std::string sum;
  std::uint64_t size = 0;
  std::string machine;  // as uname -m says it: "x86_64"; empty: this machine's
};
// Looks beside /proc/self/exe, then in ../lib/hvdrun.
[[nodiscard]] Result<AgentImage> find_agent_image();

struct CommandTransportConfig {
  std::vector<std::string> rsh;  // words; {host} {user} {port} are replaced inside words
  AgentImage agent;
  bool is_agent_running = false;  // behind rsh: it takes no command, and nothing is placed
};
[[nodiscard]] std::unique_ptr<Transport> make_command_transport(Loop& loop,
                                                                CommandTransportConfig config);

// Our own hvd-agent as a child on this machine: nothing to reach, nothing to place.
// `patience`: how long after the end of its stream the agent may take to clean up, until it is
// killed.
[[nodiscard]] std::unique_ptr<Transport> make_local_transport(Loop& loop, AgentImage agent,
                                                              SteadyTime::duration patience);

struct SshTransportConfig {
  std::string config_file;    // --ssh-config; empty: the user's and the system's
  std::string identity_file;  // -i
  std::uint16_t port = 0;     // -p
  bool accept_new_host_keys = false;
  std::chrono::nanoseconds lease;  // a connection without a sign of its other end is dropped
  AgentImage agent;
};
[[nodiscard]] std::unique_ptr<Transport> make_ssh_transport(Loop& loop, SshTransportConfig config);

// To agents that serve (hvd-agent serve). What is wrong with the files is told by open().
struct TlsTransportConfig {
  TlsFiles files;
  std::uint16_t port = 0;  // where a host names none
  std::chrono::nanoseconds
      lease;  // what was sent and is not answered for so long ends a connection
};
[[nodiscard]] std::unique_ptr<Transport> make_tls_transport(Loop& loop, TlsTransportConfig config);

}  // namespace hvd
