#include "agent/rendezvous_edge.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <utility>

#include "agent/server_edge.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/rendezvous.grpc.pb.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// gRPC gives a call without a deadline the end of time; the store needs a number.
constexpr auto kLongestWait = std::chrono::hours(24 * 365);

// For the answers to calls that the end of the job has ended.
constexpr auto kShutdownLimit = std::chrono::milliseconds(100);

std::int64_t timeout_ms(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  const auto bounded = std::clamp<std::chrono::system_clock::duration>(
      left, std::chrono::milliseconds(1), kLongestWait);
  return std::chrono::duration_cast<std::chrono::milliseconds>(bounded).count();
}

grpc::Status to_status(const v1::StoreReply& reply) {
  switch (reply.status()) {
    case v1::STORE_STATUS_OK:
      return grpc::Status::OK;
    case v1::STORE_STATUS_TIMEOUT:
      return {grpc::StatusCode::DEADLINE_EXCEEDED, reply.text()};
    case v1::STORE_STATUS_CONFLICT:
      return {grpc::StatusCode::ALREADY_EXISTS, reply.text()};
    case v1::STORE_STATUS_TOO_LARGE:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, reply.text()};
    case v1::STORE_STATUS_CANCELLED:
      return {grpc::StatusCode::UNAVAILABLE, reply.text()};
    default:
      return {grpc::StatusCode::INTERNAL, "the launcher sent an unknown status"};
  }
}

// One call of a worker. Owners: gRPC until OnDone, the relay until it has answered; OnDone comes
// only after the answer, and what it posts is the last the loop hears of the call.
class UnaryCall final : public grpc::ServerUnaryReactor, public StoreCall {
 public:
  // On gRPC's thread. `value` is where a Get's reply takes its value; null for the others.
  UnaryCall(Loop& loop, StoreRelay& relay, v1::StoreRequest request, std::string* value)
      : loop_(loop), relay_(relay), request_(std::move(request)), value_(value) {
    boost::asio::post(loop_, [this] { start(); });
  }

  void answer(const v1::StoreReply& reply) override {
    if (value_ != nullptr) *value_ = reply.value();
    Finish(to_status(reply));
  }

 private:
  void start() {
    if (const auto refusal = check_store_request(request_)) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT, *refusal});
    }
    id_ = relay_.start(std::move(request_), this);
  }

  void OnCancel() override {
    boost::asio::post(loop_, [this] { relay_.cancel(id_); });
  }
  void OnDone() override {
    boost::asio::post(loop_, [this] { delete this; });
  }

  Loop& loop_;
  StoreRelay& relay_;
  v1::StoreRequest request_;
  std::string* const value_;  // gRPC's, valid until OnDone
  std::uint64_t id_ = 0;      // the loop's
};

}  // namespace

struct RendezvousEdge::Impl final : v1::Rendezvous::CallbackService {
  Impl(Loop& the_loop, StoreRelay& the_relay)
      : loop(the_loop), relay(the_relay), listener(the_loop) {}

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext*, const v1::PutRequest* asked,
                                v1::PutReply*) override {
    v1::StoreRequest request;
    request.mutable_put()->set_key(asked->key());
    request.mutable_put()->set_value(asked->value());
    request.mutable_put()->set_generation(asked->generation());
    return new UnaryCall(loop, relay, std::move(request), nullptr);
  }

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetRequest* asked,
                                v1::GetReply* reply) override {
    v1::StoreRequest request;
    request.mutable_get()->set_key(asked->key());
    request.mutable_get()->set_generation(asked->generation());
    request.mutable_get()->set_timeout_ms(timeout_ms(*context));
    return new UnaryCall(loop, relay, std::move(request), reply->mutable_value());
  }

  grpc::ServerUnaryReactor* Barrier(grpc::CallbackServerContext* context,
                                    const v1::BarrierRequest* asked, v1::BarrierReply*) override {
    v1::StoreRequest request;
    v1::StoreBarrier* barrier = request.mutable_barrier();
    barrier->set_name(asked->name());
    barrier->set_generation(asked->generation());
    barrier->set_rank(asked->rank());
    barrier->set_size(asked->size());
    barrier->set_timeout_ms(timeout_ms(*context));
    return new UnaryCall(loop, relay, std::move(request), nullptr);
  }

  void accept();
  void take_connection(UniqueFd connection);

  Loop& loop;
  StoreRelay& relay;
  boost::asio::posix::stream_descriptor listener;
  std::unique_ptr<grpc::Server> server;
};

void RendezvousEdge::Impl::accept() {
  listener.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](const boost::system::error_code& error) {
                        if (error) return;
                        take_connection(UniqueFd(accept4(listener.native_handle(), nullptr, nullptr,
                                                         SOCK_CLOEXEC | SOCK_NONBLOCK)));
                        accept();
                      });
}

void RendezvousEdge::Impl::take_connection(UniqueFd connection) {
  if (!connection.is_valid()) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != geteuid()) {
    return log(LogLevel::kWarning, "refused a rendezvous connection of user {} (pid {})", peer.uid,
               peer.pid);
  }
  if (!server) server = start_server(this);
  if (server) grpc::AddInsecureChannelFromFd(server.get(), connection.release());
}

RendezvousEdge::RendezvousEdge(Loop& loop, StoreRelay& relay)
    : impl_(std::make_unique<Impl>(loop, relay)) {}

RendezvousEdge::~RendezvousEdge() = default;

Result<void> RendezvousEdge::start(const std::string& path) {
  constexpr int kBacklog = 512;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return make_error("{} is too long a path", path);
  memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid() ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    return make_error("cannot listen at {}: {}", path, strerror(errno));
  }
  impl_->listener.assign(socket.release());
  impl_->accept();
  return {};
}

void RendezvousEdge::shutdown(std::function<void()> done) {
  boost::system::error_code ignored;
  impl_->listener.close(ignored);
  shut_down_server(impl_->server.get(), impl_->loop, kShutdownLimit, std::move(done));
}

}  // namespace hvd
