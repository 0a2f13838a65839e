#include "agent/rendezvous_edge.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <charconv>
#include <chrono>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "agent/peer_user.h"
#include "agent/server_edge.h"
#include "agent/watch_edge.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "base/unix_address.h"
#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "proto/store_call_edge.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// For the answers to calls that the end of the job has ended.
constexpr auto kShutdownLimit = std::chrono::milliseconds(100);

// A worker that does not take a notice within this time delays nobody else's.
constexpr auto kNoticeLimit = std::chrono::milliseconds(50);

// gRPC names a connection of a descriptor "fd:N"; a name of another form tells no process.
int descriptor_in(std::string_view peer) {
  int fd = -1;
  if (peer.starts_with("fd:")) std::from_chars(peer.data() + 3, peer.data() + peer.size(), fd);
  return fd;
}

// One call of a worker. Owners: gRPC until OnDone, the relay until it has answered; OnDone comes
// only after the answer, and what it posts is the last the loop hears of the call.
class UnaryCall final : public grpc::ServerUnaryReactor, public StoreCall {
 public:
  // On gRPC's thread. `take` puts what the call's own reply has of the store's there, on the loop.
  using Take = std::function<void(const v1::StoreReply&)>;
  UnaryCall(Loop& loop, StoreRelay& relay, v1::StoreRequest request, Take take = {})
      : loop_(loop), relay_(relay), request_(std::move(request)), take_(std::move(take)) {
    boost::asio::post(loop_, [this] { start(); });
  }

  void answer(const v1::StoreReply& reply) override {
    if (take_) take_(reply);
    Finish(store_status(reply));
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
  const Take take_;       // its reply is gRPC's, valid until OnDone
  std::uint64_t id_ = 0;  // the loop's
};

}  // namespace

struct RendezvousEdge::Impl final : v1::Rendezvous::CallbackService {
  Impl(Loop& the_loop, StoreRelay& the_relay, Handlers the_handlers)
      : loop(the_loop),
        relay(the_relay),
        handlers(std::move(the_handlers)),
        watch(loop, {[this](const std::string& peer, const v1::WorkerBeat& beat) {
                       handlers.on_beat(beat, pid_of(peer));
                     },
                     [this](std::uint32_t rank) { handlers.on_watch_end(rank); }}),
        listener(the_loop) {}

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext*, const v1::PutRequest* asked,
                                v1::PutReply*) override {
    return new UnaryCall(loop, relay, store_request(*asked));
  }

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetRequest* asked,
                                v1::GetReply* reply) override {
    return new UnaryCall(
        loop, relay, store_request(*asked, store_timeout_ms(*context)),
        [reply](const v1::StoreReply& answer) { reply->set_value(answer.value()); });
  }

  grpc::ServerUnaryReactor* Barrier(grpc::CallbackServerContext* context,
                                    const v1::BarrierRequest* asked, v1::BarrierReply*) override {
    return new UnaryCall(loop, relay, store_request(*asked, store_timeout_ms(*context)));
  }

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::Registration* asked,
                                     v1::RegisterReply* reply) override {
    return new UnaryCall(
        loop, relay, store_request(*asked, store_timeout_ms(*context)),
        [reply](const v1::StoreReply& answer) { *reply->mutable_warnings() = answer.warnings(); });
  }

  grpc::ServerBidiReactor<v1::WorkerBeat, v1::WorkerNotice>* Watch(
      grpc::CallbackServerContext* context) override {
    return watch.open(context->peer());
  }

  void accept();
  void take_connection(UniqueFd connection);
  [[nodiscard]] pid_t pid_of(const std::string& peer) const {
    const auto found = pids.find(descriptor_in(peer));
    return found == pids.end() ? 0 : found->second;
  }

  Loop& loop;
  StoreRelay& relay;
  const Handlers handlers;
  WatchEdge watch;
  std::unordered_map<int, pid_t> pids;  // of the process behind each descriptor, the last one's
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
  const auto peer = peer_user(connection.get());
  if (!peer || peer->uid != geteuid()) {
    return log(LogLevel::kWarning, "refused a rendezvous connection of user {} (pid {})",
               peer ? peer->uid : 0, peer ? peer->pid : 0);
  }
  if (!server) server = start_server(this);
  if (!server) return;
  pids[connection.get()] = peer->pid;
  grpc::AddInsecureChannelFromFd(server.get(), connection.release());
}

RendezvousEdge::RendezvousEdge(Loop& loop, StoreRelay& relay, Handlers handlers)
    : impl_(std::make_unique<Impl>(loop, relay, std::move(handlers))) {}

RendezvousEdge::~RendezvousEdge() = default;

Result<void> RendezvousEdge::start(const std::string& path) {
  constexpr int kBacklog = 512;
  const sockaddr_un address = unix_address(path);
  if (path.size() >= sizeof address.sun_path) return make_error("{} is too long a path", path);
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

void RendezvousEdge::notify(const v1::WorkerNotice& notice, std::function<void()> done) {
  impl_->watch.notify(notice, kNoticeLimit, std::move(done));
}

void RendezvousEdge::shutdown(std::function<void()> done) {
  boost::system::error_code ignored;
  impl_->listener.close(ignored);
  impl_->watch.close();
  shut_down_server(impl_->server.get(), impl_->loop, kShutdownLimit, std::move(done));
}

}  // namespace hvd
