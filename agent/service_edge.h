// AgentService on the launcher's stream, and on nothing else: one Control, one Output and one
// Stage call.
//
// Lifecycle: start() once; shutdown() once, after which no handler is called any more when `done`
// has been. Thread: the loop's, handlers too; gRPC's threads stay inside.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

class ServiceEdge {
 public:
  struct Handlers {
    std::function<void(hvdrun::v1::ControlRequest&&)> on_control;
    std::function<void()> on_control_end;  // the launcher has gone or will say no more
    std::function<void(hvdrun::v1::OutputRequest&&)> on_output;
    std::function<void()> on_output_idle;  // the call is open and nothing is being written
    std::function<void(hvdrun::v1::StageRequest&&)> on_stage;
  };

  ServiceEdge(Loop& loop, Handlers handlers);
  ~ServiceEdge();

  // Takes the launcher's stream; it must be a non-blocking socket.
  [[nodiscard]] Result<void> start(UniqueFd stream);

  // Whether there is somebody to send to.
  [[nodiscard]] bool is_control_open() const;
  void send(hvdrun::v1::ControlReply reply);

  [[nodiscard]] bool is_output_idle() const;
  void send_output(hvdrun::v1::OutputReply reply);

  void send_stage(hvdrun::v1::StageReply reply);

  // Ends the calls after what is queued. An error is told as INTERNAL, or as FAILED_PRECONDITION
  // if the launcher's request is at fault.
  enum class Ending { kDone, kInternal, kRefused };
  void finish(Ending ending, const std::string& text);

  // On a helper thread, because it waits for the calls; `done` is posted to the loop.
  void shutdown(std::function<void()> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd
