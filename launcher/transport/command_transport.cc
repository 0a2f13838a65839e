// The transports `command` and `local`: a child process whose standard input and output are the
// stream. The node's command is the one word `sh`, which no program on the way can split or quote
// wrongly; the boot script follows as its standard input. Where an agent runs already, the program
// is given no command, and the stream begins with a line for that agent.
#include <sys/socket.h>

#include <memory>

#include "launcher/transport/boot_dialogue.h"
#include "launcher/transport/boot_script.h"
#include "launcher/transport/helper_process.h"
#include "launcher/transport/open_list.h"
#include "launcher/transport/rsh_words.h"
#include "launcher/transport/transport.h"

namespace hvd {
namespace {

// How long after the end of the stream its program may take to say why.
constexpr auto kLastWordsOfHelper = std::chrono::seconds(1);

class ChildConnection final : public Connection {
 public:
  ChildConnection(std::shared_ptr<HelperProcess> helper, std::string noise, std::string agent_path)
      : helper_(std::move(helper)), noise_(std::move(noise)), agent_path_(std::move(agent_path)) {}
  ~ChildConnection() override { helper_->end(); }

  UniqueFd take_stream() override { return helper_->take_stream(); }
  [[nodiscard]] std::string diagnostics() const override {
    return noise_ + helper_->side_text().text();
  }
  [[nodiscard]] std::string agent_path() const override { return agent_path_; }

 private:
  const std::shared_ptr<HelperProcess>
      helper_;  // shared with the coroutines that watch the process
  const std::string noise_;
  const std::string agent_path_;
};

using Opened = Result<std::unique_ptr<Connection>>;

// Local is a transport without a program on the way: the child is the agent itself, already here.
class ChildTransport final : public Transport {
 public:
  // Without words in config.rsh: local.
  ChildTransport(Loop& loop, CommandTransportConfig config, SteadyTime::duration patience = {})
      : loop_(loop),
        patience_(patience),
        rsh_(std::move(config.rsh)),
        is_agent_running_(config.is_agent_running),
        upload_(std::move(config.agent)) {}

  void abort() override { opens_.abort_all(); }

  Task<Opened> open(OpenRequest request) override {
    const SteadyTime start = std::chrono::steady_clock::now();
    const std::string marker = make_marker();
    const auto words = words_for(request, marker);
    if (!words) co_return tl::unexpected(words.error());
    if (opens_.is_aborted()) co_return make_error("{}: stopped", request.target.host);
    const Phase phase = is_local() ? Phase::kStartAgent : Phase::kConnect;
    if (request.on_phase) request.on_phase(phase);
    auto child = spawn_child(*words);
    if (!child) co_return tl::unexpected(child.error().within(request.target.host));
    const auto ending =
        is_local() ? HelperProcess::Ending::kByItself : HelperProcess::Ending::kBySignal;
    auto helper = HelperProcess::watch(loop_, std::move(*child), ending, patience_);
    const OpenList::Entry entry(opens_, [&] { ::shutdown(helper->stream(), SHUT_RDWR); });

    BootRequest boot;
    boot.stream = helper->stream();
    boot.marker = marker;
    if (!is_local()) boot.first_bytes = script_for(request, marker);
    boot.deadline = request.deadline;
    boot.on_phase = request.on_phase;
    const BootReport report = co_await run_boot_dialogue(loop_, upload_, std::move(boot));
    if (report.state == BootReport::State::kReady) {
      co_return std::make_unique<ChildConnection>(
          std::move(helper), report.noise, is_local() ? upload_.image().path : report.folder);
    }
    if (report.state == BootReport::State::kEnded && !opens_.is_aborted()) {
      const SteadyTime now = std::chrono::steady_clock::now();
      co_await helper->wait_until_ended(std::min(request.deadline, now + kLastWordsOfHelper));
    }
    co_return failure(request, report, *helper, request.deadline - start, words->front());
  }

 private:
  [[nodiscard]] bool is_local() const { return rsh_.empty(); }

  [[nodiscard]] std::string script_for(const OpenRequest& request,
                                       const std::string& marker) const {
    if (is_agent_running_) return agent_greeting(marker, request.agent_words);
    return boot_script(upload_.image(), marker, request.agent_words) + '\n';
  }

  [[nodiscard]] Result<std::vector<std::string>> words_for(const OpenRequest& request,
                                                           const std::string& marker) const {
    if (is_agent_running_) return expand_rsh(rsh_, request.target, {});
    if (!is_local()) return expand_rsh(rsh_, request.target, {"sh"});
    std::vector<std::string> words = {upload_.image().path};
    words.insert(words.end(), request.agent_words.begin(), request.agent_words.end());
    words.insert(words.end(), {"--marker", marker});
    return words;
  }

  Opened failure(const OpenRequest& request, const BootReport& report, HelperProcess& helper,
                 SteadyTime::duration budget, const std::string& program) {
    const std::string ending = helper.side_text().ending();
    const std::string error_text = helper.side_text().text();
    helper.end();
    if (opens_.is_aborted()) return make_error("{}: stopped", request.target.host);
    Error error = explain_boot_failure(
        report,
        {request.target.host, ending.empty() ? "" : fmt::format("{} of {}", ending, program),
         error_text, budget, report.folder.empty() ? Phase::kConnect : Phase::kStartAgent});
    return tl::unexpected(std::move(error));
  }

  Loop& loop_;
  const SteadyTime::duration patience_;  // with our own agent
  const std::vector<std::string> rsh_;
  const bool is_agent_running_;
  AgentUpload upload_;
  OpenList opens_;
};

}  // namespace

std::unique_ptr<Transport> make_command_transport(Loop& loop, CommandTransportConfig config) {
  return std::make_unique<ChildTransport>(loop, std::move(config));
}

std::unique_ptr<Transport> make_local_transport(Loop& loop, AgentImage agent,
                                                SteadyTime::duration patience) {
  return std::make_unique<ChildTransport>(loop, CommandTransportConfig{{}, std::move(agent)},
                                          patience);
}

}  // namespace hvd
