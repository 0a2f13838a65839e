// The launcher's side of the boot script: waits for the agent's ready line on a fresh stream and
// uploads the agent when the node lacks it. Takes not one byte more than that line from the stream.
//
// Lifecycle: one call per stream. Thread: the loop's.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "launcher/transport/agent_upload.h"
#include "launcher/transport/boot_scanner.h"
#include "launcher/transport/transport.h"

namespace hvd {

struct BootRequest {
  int stream = -1;  // connected, non-blocking; not owned
  std::string marker;
  std::string first_bytes;  // the script, where it travels on the stream itself
  SteadyTime deadline;
  std::function<void(Phase)> on_phase;
};

struct BootReport {
  enum class State { kReady, kRefused, kEnded, kTooNoisy, kTimedOut };
  State state = State::kEnded;
  std::string text;         // of an error line, or the agent's version
  std::string noise;        // what came before the first marker
  std::string folder;       // where the agent is on the node
  bool is_placing = false;  // the upload was not finished
};

[[nodiscard]] Task<BootReport> run_boot_dialogue(Loop& loop, AgentUpload& upload,
                                                 BootRequest request);

// The sentence for a report that is not kReady. `ending` and `error_text` come from the side of the
// stream and may be empty.
struct BootFailure {
  std::string_view host;
  std::string_view ending;      // "exit 127"
  std::string_view error_text;  // standard error
  SteadyTime::duration budget{};
  Phase phase = Phase::kStartAgent;  // unless it was placing
};
[[nodiscard]] Error explain_boot_failure(const BootReport& report, const BootFailure& failure);

}  // namespace hvd
