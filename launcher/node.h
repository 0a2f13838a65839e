// What the launcher knows of one node of the job: its stream, where its start stands and what has
// become of its ranks. Owned by the job; loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "hvdrun/v1/agent.pb.h"
#include "launcher/agent_link.h"
#include "launcher/clock_offset.h"
#include "launcher/fabric_choice.h"
#include "launcher/hostlist.h"
#include "launcher/report_evidence.h"
#include "launcher/stage_sender.h"
#include "launcher/start_phases.h"
#include "launcher/timeline/node_timeline.h"
#include "launcher/transport/transport.h"
#include "proto/v1.h"

namespace hvd {

struct Node {
  std::uint32_t index = 0;  // position in the host list; HVDRUN_NODE
  HostSpec host;
  std::vector<std::uint32_t> ranks;  // empty until planned, or if the plan gives it none
  std::vector<std::string> gpus;     // by local rank, with --one-gpu-per-rank

  // Start.
  StartPhases phases;
  std::optional<Error> error;  // why the node could not be reached
  std::unique_ptr<Connection> connection;
  std::unique_ptr<AgentLink> link;
  std::optional<v1::HelloReply> hello;
  std::optional<v1::FabricProbeReply> probe;
  FabricDecision::Node fabric;       // its own address among the nodes
  std::optional<StageSender> stage;  // with --stage, from its hello on
  std::optional<v1::StageDone> staged;

  Nanos hello_sent{};       // boot time
  Nanos realtime_offset{};  // its wall clock minus ours, at the hello

  // Life.
  ClockOffset clock;
  Nanos last_heard{};  // boot time
  bool is_spawn_sent = false;
  bool is_stop_sent = false;
  bool is_bye_sent = false;
  bool is_evidence_due = false;
  std::uint32_t num_started = 0;
  std::uint32_t num_exited = 0;
  std::uint32_t num_succeeded = 0;     // with 0
  std::uint32_t num_open_streams = 0;  // of its ranks, two each
  std::optional<v1::Finished> finished;
  std::string last_notice;               // its last warning
  KernelNotes kernel;                    // what its kernel's log says since the hello
  std::optional<NodeTimeline> timeline;  // once it was asked for
  bool is_link_closed = false;
  bool is_lost = false;  // the stream ended or fell silent before the node said it had finished

  // After it was lost (job_reap.cc).
  bool is_reaping = false;
  std::optional<v1::Finished> reaped;  // what a new connection found and did
  std::string unverified;              // or why nothing is known

  // What is known of its end; nullptr: nothing.
  [[nodiscard]] const v1::Finished* end() const {
    if (finished) return &*finished;
    return reaped ? &*reaped : nullptr;
  }

  [[nodiscard]] bool is_reached() const { return hello.has_value(); }
  // Nothing more is expected of it.
  [[nodiscard]] bool is_ended() const {
    if (!is_spawn_sent || is_lost) return true;
    return finished.has_value() && num_open_streams == 0;
  }
};

}  // namespace hvd
