// The launcher's end of one node's stream: a gRPC channel on a connected socket with the calls
// Control, Output and, where files are staged, Stage.
//
// Lifecycle: made when the stream is there, closed by close() or by the other side; on_closed comes
// exactly once, unless the link is destroyed first. Thread: every method and every callback runs on
// the loop's thread. gRPC's own threads only post to the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/v1.h"

namespace hvd {

class AgentLink {
 public:
  struct Handlers {
    std::function<void(v1::ControlReply)> on_reply;
    std::function<void(v1::OutputReply)> on_output;
    std::function<void()> on_output_closed;             // no more output will come
    std::function<void(const std::string&)> on_closed;  // Control ended; why, in a few words
    std::function<void(v1::StageReply)> on_stage = {};
    std::function<void()> on_stage_idle = {};  // all that was given to send_stage() is on its way
  };

  // `stream` is a connected non-blocking socket; `label` names the node in gRPC's own messages.
  AgentLink(Loop& loop, UniqueFd stream, const std::string& label, Handlers handlers);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Queued without limit: the launcher sends little and only in answer to the job's own events.
  void send(v1::ControlRequest request);

  // Opens the Output call and grants its first credit.
  void open_output(const std::string& job_id, std::uint64_t credit);
  void grant(std::uint64_t credit);
  // Standard input for the rank that has one, over Output. The caller bounds what is on its way.
  void send_input(std::string data, bool is_end);

  // Opens the Stage call with the first one. The caller bounds what is on its way.
  void send_stage(v1::StageRequest request);

  // Ends the calls; on_closed follows.
  void close();

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace hvd
