#include "launcher/agent_link.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <utility>

#include "hvdrun/v1/agent.grpc.pb.h"

namespace hvd {
namespace {

constexpr int kMaxMessageBytes = 16 << 20;

// One bidirectional call. Two owners: the link, until it lets go, and gRPC, until OnDone; hence the
// shared pointer to itself. Reactions run on gRPC's threads and only post; all else is the loop's.
template <typename Request, typename Reply>
class StreamCall : public grpc::ClientBidiReactor<Request, Reply> {
 public:
  using Self = StreamCall<Request, Reply>;
  std::function<void(Reply)> on_reply;               // loop
  std::function<void(const grpc::Status&)> on_done;  // loop
  std::function<void()> on_written = [] {};          // loop; nothing is left to be written

  explicit StreamCall(Loop& loop) : loop_(loop), work_(loop.get_executor()) {}

  grpc::ClientContext& context() { return context_; }

  // The stub's async call must have been made with this reactor.
  void start(std::shared_ptr<Self> self) {
    self_ = std::move(self);
    // Operations start from the loop, outside reactions: the hold keeps gRPC from ending the call
    // between two of them. It goes with the last read.
    this->AddHold();
    this->StartRead(&reply_);
    this->StartCall();
  }
  void write(Request request) {
    queue_.push_back(std::move(request));
    write_next();
  }
  void cancel() { context_.TryCancel(); }
  void detach() {
    on_reply = nullptr;
    on_done = nullptr;
    on_written = [] {};
    cancel();
  }

 private:
  void OnReadDone(bool ok) override {
    boost::asio::post(loop_, [this, ok] { ok ? handle_reply() : handle_read_end(); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(loop_, [this, ok] { handle_written(ok); });
  }
  void OnDone(const grpc::Status& status) override {
    boost::asio::post(loop_, [this, status] { handle_done(status); });
  }

  void handle_reply() {
    if (on_reply) on_reply(std::move(reply_));
    reply_.Clear();
    this->StartRead(&reply_);
  }
  void handle_read_end() {
    is_done_ = true;
    this->RemoveHold();
  }
  void handle_written(bool ok) {
    is_writing_ = false;
    queue_.pop_front();
    if (!ok) return;
    write_next();
    if (queue_.empty()) on_written();
  }
  void write_next() {
    if (is_writing_ || queue_.empty() || is_done_) return;
    is_writing_ = true;
    this->StartWrite(&queue_.front());
  }
  void handle_done(const grpc::Status& status) {
    is_done_ = true;
    const std::shared_ptr<Self> last = std::move(self_);
    work_.reset();
    if (on_done) on_done(status);
  }

  Loop& loop_;
  boost::asio::executor_work_guard<Loop::executor_type> work_;
  std::shared_ptr<Self> self_;  // gRPC's share, given up after OnDone
  grpc::ClientContext context_;
  Reply reply_;
  std::deque<Request> queue_;
  bool is_writing_ = false;
  bool is_done_ = false;
};

using ControlCall = StreamCall<v1::ControlRequest, v1::ControlReply>;
using OutputCall = StreamCall<v1::OutputRequest, v1::OutputReply>;
using StageCall = StreamCall<v1::StageRequest, v1::StageReply>;

std::shared_ptr<grpc::Channel> channel_on(UniqueFd stream, const std::string& label) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetMaxSendMessageSize(kMaxMessageBytes);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Liveness is the lease alone: a descriptor channel cannot reconnect, so nothing may end it
  // early.
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20);
  return grpc::CreateCustomInsecureChannelFromFd(label, stream.release(), args);
}

// gRPC's own words for the end of a stream ("Socket closed") tell a user nothing.
std::string reason_of(const grpc::Status& status) {
  if (status.ok()) return "the agent ended the job";
  if (status.error_code() == grpc::StatusCode::CANCELLED) return "its agent was ended";
  const bool is_stream = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  return is_stream || status.error_message().empty() ? "its connection ended"
                                                     : status.error_message();
}

}  // namespace

struct AgentLink::Calls {
  Loop& loop;
  Handlers handlers;
  std::unique_ptr<v1::AgentService::Stub> stub;
  std::shared_ptr<ControlCall> control;
  std::shared_ptr<OutputCall> output;
  std::shared_ptr<StageCall> stage;
};

AgentLink::AgentLink(Loop& loop, UniqueFd stream, const std::string& label, Handlers handlers)
    : calls_(new Calls{loop, std::move(handlers), nullptr, nullptr, nullptr, nullptr}) {
  calls_->stub = v1::AgentService::NewStub(channel_on(std::move(stream), label));
  auto call = std::make_shared<ControlCall>(loop);
  calls_->control = call;
  call->on_reply = [this](v1::ControlReply reply) { calls_->handlers.on_reply(std::move(reply)); };
  call->on_done = [this](const grpc::Status& status) {
    calls_->handlers.on_closed(reason_of(status));
  };
  calls_->stub->async()->Control(&call->context(), call.get());
  call->start(call);
}

AgentLink::~AgentLink() {
  calls_->control->detach();
  if (calls_->output) calls_->output->detach();
  if (calls_->stage) calls_->stage->detach();
}

void AgentLink::send(v1::ControlRequest request) { calls_->control->write(std::move(request)); }

void AgentLink::open_output(const std::string& job_id, std::uint64_t credit) {
  auto call = std::make_shared<OutputCall>(calls_->loop);
  calls_->output = call;
  call->on_reply = [this](v1::OutputReply reply) { calls_->handlers.on_output(std::move(reply)); };
  call->on_done = [this](const grpc::Status&) { calls_->handlers.on_output_closed(); };
  calls_->stub->async()->Output(&call->context(), call.get());
  call->start(call);
  v1::OutputRequest first;
  first.set_job_id(job_id);
  first.set_credit(credit);
  call->write(std::move(first));
}

void AgentLink::grant(std::uint64_t credit) {
  if (!calls_->output) return;
  v1::OutputRequest request;
  request.set_credit(credit);
  calls_->output->write(std::move(request));
}

void AgentLink::send_input(std::string data, bool is_end) {
  if (!calls_->output) return;
  v1::OutputRequest request;
  request.set_input(std::move(data));
  request.set_input_end(is_end);
  calls_->output->write(std::move(request));
}

// Its end needs no word of its own: that of Control says why.
void AgentLink::send_stage(v1::StageRequest request) {
  if (!calls_->stage) {
    auto call = std::make_shared<StageCall>(calls_->loop);
    calls_->stage = call;
    call->on_reply = [this](v1::StageReply reply) { calls_->handlers.on_stage(std::move(reply)); };
    call->on_written = [this] { calls_->handlers.on_stage_idle(); };
    calls_->stub->async()->Stage(&call->context(), call.get());
    call->start(call);
  }
  calls_->stage->write(std::move(request));
}

void AgentLink::close() {
  calls_->control->cancel();
  if (calls_->output) calls_->output->cancel();
  if (calls_->stage) calls_->stage->cancel();
}

}  // namespace hvd
