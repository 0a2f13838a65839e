#include "agent/service_edge.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <utility>

#include "agent/server_edge.h"
#include "agent/stream_edge.h"
#include "hvdrun/v1/agent.grpc.pb.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

using ControlCall = StreamCall<v1::ControlRequest, v1::ControlReply>;
using OutputCall = StreamCall<v1::OutputRequest, v1::OutputReply>;
using StageCall = StreamCall<v1::StageRequest, v1::StageReply>;

// Control carries no bulk: a launcher that lets this much pile up does not read any more.
constexpr std::size_t kMaxControlQueue = 65536;

// After a goodbye nobody waits for anything; an error should still reach a launcher that is far
// away.
constexpr auto kLimitAfterBye = std::chrono::milliseconds(100);
constexpr auto kLimitAfterError = std::chrono::milliseconds(1000);

}  // namespace

struct ServiceEdge::Impl final : v1::AgentService::CallbackService {
  Impl(Loop& the_loop, Handlers the_handlers);

  grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlReply>* Control(
      grpc::CallbackServerContext*) override {
    return new ControlCall(loop, control_handlers);
  }
  grpc::ServerBidiReactor<v1::OutputRequest, v1::OutputReply>* Output(
      grpc::CallbackServerContext*) override {
    return new OutputCall(loop, output_handlers);
  }
  grpc::ServerBidiReactor<v1::StageRequest, v1::StageReply>* Stage(
      grpc::CallbackServerContext*) override {
    return new StageCall(loop, stage_handlers);
  }

  // The first call of each kind is the job's; another is refused.
  template <typename Call>
  void take(Call* call, Call** slot, bool* had_one) {
    if (is_closed) return call->finish({grpc::StatusCode::UNAVAILABLE, "the agent is leaving"});
    if (std::exchange(*had_one, true)) {
      call->finish({grpc::StatusCode::ALREADY_EXISTS, "this call is open already"});
      return;
    }
    *slot = call;
    call->read();
  }

  Loop& loop;  // not owned
  const Handlers handlers;
  ControlCall::Handlers control_handlers;
  OutputCall::Handlers output_handlers;
  StageCall::Handlers stage_handlers;
  ControlCall* control = nullptr;  // not owned; null before it opens and after finish()
  OutputCall* output = nullptr;    // the same
  StageCall* stage = nullptr;      // the same
  bool had_control = false;
  bool had_output = false;
  bool had_stage = false;
  bool is_closed = false;  // no more calls
  std::chrono::milliseconds limit = kLimitAfterBye;
  std::unique_ptr<grpc::Server> server;
};

ServiceEdge::Impl::Impl(Loop& the_loop, Handlers the_handlers)
    : loop(the_loop), handlers(std::move(the_handlers)) {
  control_handlers.on_open = [this](ControlCall* call) { take(call, &control, &had_control); };
  control_handlers.on_request = [this](ControlCall* call, v1::ControlRequest&& request) {
    if (call == control) handlers.on_control(std::move(request));
    if (call == control) call->read();
  };
  control_handlers.on_written = [](ControlCall*) {};
  control_handlers.on_end = [this](ControlCall* call) {
    if (call == control) handlers.on_control_end();
  };
  output_handlers.on_open = [this](OutputCall* call) { take(call, &output, &had_output); };
  output_handlers.on_request = [this](OutputCall* call, v1::OutputRequest&& request) {
    if (call == output) handlers.on_output(std::move(request));
    if (call == output) call->read();
  };
  output_handlers.on_written = [this](OutputCall* call) {
    if (call == output) handlers.on_output_idle();
  };
  // Half closed or gone: Control says which; here nothing more can be sent.
  output_handlers.on_end = [this](OutputCall* call) {
    if (call != output) return;
    output = nullptr;
    call->finish(grpc::Status::OK);
  };
  stage_handlers.on_open = [this](StageCall* call) { take(call, &stage, &had_stage); };
  stage_handlers.on_request = [this](StageCall* call, v1::StageRequest&& request) {
    if (call == stage) handlers.on_stage(std::move(request));
    if (call == stage) call->read();
  };
  stage_handlers.on_written = [](StageCall*) {};
  stage_handlers.on_end = [this](StageCall* call) {
    if (call != stage) return;
    stage = nullptr;
    call->finish(grpc::Status::OK);
  };
}

ServiceEdge::ServiceEdge(Loop& loop, Handlers handlers)
    : impl_(std::make_unique<Impl>(loop, std::move(handlers))) {}

ServiceEdge::~ServiceEdge() = default;

Result<void> ServiceEdge::start(UniqueFd stream) {
  impl_->server = start_server(impl_.get());
  if (!impl_->server) return make_error("gRPC did not start");
  grpc::AddInsecureChannelFromFd(impl_->server.get(), stream.release());
  return {};
}

bool ServiceEdge::is_control_open() const { return impl_->control != nullptr; }

void ServiceEdge::send(v1::ControlReply reply) {
  ControlCall* const call = impl_->control;
  if (call == nullptr) return;
  if (call->num_queued() >= kMaxControlQueue) {
    return finish(Ending::kInternal, "the launcher does not read its control call");
  }
  call->write(std::move(reply));
}

bool ServiceEdge::is_output_idle() const {
  return impl_->output != nullptr && !impl_->output->is_writing();
}

void ServiceEdge::send_output(v1::OutputReply reply) {
  if (impl_->output != nullptr) impl_->output->write(std::move(reply));
}

void ServiceEdge::send_stage(v1::StageReply reply) {
  if (impl_->stage != nullptr) impl_->stage->write(std::move(reply));
}

void ServiceEdge::finish(Ending ending, const std::string& text) {
  const grpc::Status status = ending == Ending::kDone ? grpc::Status::OK
                              : ending == Ending::kInternal
                                  ? grpc::Status(grpc::StatusCode::INTERNAL, text)
                                  : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, text);
  impl_->is_closed = true;
  if (ending != Ending::kDone) impl_->limit = kLimitAfterError;
  if (auto* const call = std::exchange(impl_->control, nullptr)) call->finish(status);
  if (auto* const call = std::exchange(impl_->output, nullptr)) call->finish(status);
  if (auto* const call = std::exchange(impl_->stage, nullptr)) call->finish(status);
}

void ServiceEdge::shutdown(std::function<void()> done) {
  shut_down_server(impl_->server.get(), impl_->loop, impl_->limit, std::move(done));
}

}  // namespace hvd
