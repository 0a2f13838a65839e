#include "runtime/rendezvous_link.h"

#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <string_view>
#include <utility>

#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "runtime/agent_channel_link.h"
#include "runtime/tcp_place.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// The gRPC library's own words for a deadline say nothing; the store's do.
bool is_from_store(const grpc::Status& status) {
  return !status.error_message().empty() && status.error_message() != "Deadline Exceeded";
}

// whom, path: who answers and where. silence: why nobody does, where that is known.
Error error_of(const grpc::Status& status, const std::string& what, const std::string& whom,
               const std::string& path, std::chrono::milliseconds timeout,
               const std::string& silence) {
  Error error;
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      error.code = ExitCode::kTimeout;
      error.message = fmt::format("{}: no answer within {} ms", what, timeout.count());
      if (is_from_store(status)) error.message += " (" + status.error_message() + ")";
      if (!silence.empty()) error.message += ": " + silence;
      return error;
    case grpc::StatusCode::FAILED_PRECONDITION:
      error.code = static_cast<ExitCode>(WorkerExit::kMismatch);
      error.message = fmt::format("{}: {}", what, status.error_message());
      return error;
    case grpc::StatusCode::UNAVAILABLE:
      error.may_retry = true;
      error.message = fmt::format("{}: {} cannot be reached by {}: {}", what, whom, path,
                                  status.error_message());
      return error;
    case grpc::StatusCode::UNIMPLEMENTED:
      error.message = fmt::format("{}: whoever listens on {} is not {} of this version of hvdrun",
                                  what, path, whom);
      return error;
    default:
      error.message = fmt::format("{}: {}", what, status.error_message());
      return error;
  }
}

}  // namespace

struct RendezvousLink::Channel {
  explicit Channel(std::string socket_path)
      : path(std::move(socket_path)),
        connection(channel_to_agent(path)),
        stub(v1::Rendezvous::NewStub(connection)) {}
  Channel(const std::string& to_host, int to_port, std::string of_job)
      : whom("rank 0"),
        path(fmt::format("tcp://{}:{}", to_host, to_port)),
        waits_for_server(true),
        host(to_host),
        port(to_port),
        job(std::move(of_job)),
        connection(channel_to_peer(host, port)),
        stub(v1::Rendezvous::NewStub(connection)) {}

  // One call of the stub with its deadline.
  template <typename Method, typename Request, typename Reply>
  Result<void> call(Method method, const Request& request, Reply* reply, const std::string& what,
                    Timeout timeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    context.set_wait_for_ready(waits_for_server);
    if (waits_for_server) context.AddMetadata(kJobMetadata, job);
    const grpc::Status status = (stub.get()->*method)(&context, request, reply);
    if (status.ok()) return {};
    return tl::unexpected(error_of(status, waits_for_server ? path + ": " + what : what, whom, path,
                                   timeout, silence_after(status)));
  }

  // Where no rank 0 was ever reached.
  [[nodiscard]] std::string silence_after(const grpc::Status& status) const {
    const bool is_late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!waits_for_server || !is_late || is_from_store(status)) return "";
    if (connection->GetState(false) == GRPC_CHANNEL_READY) return "";
    return describe_silence(host, port);
  }

  const std::string whom = "the agent of this node or its launcher";
  const std::string path;
  const bool waits_for_server = false;
  const std::string host;  // of rank 0, as all below
  const int port = 0;
  const std::string job;
  const std::shared_ptr<grpc::Channel> connection;
  const std::unique_ptr<v1::Rendezvous::Stub> stub;
};

RendezvousLink::RendezvousLink(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
RendezvousLink::RendezvousLink(RendezvousLink&&) noexcept = default;
RendezvousLink& RendezvousLink::operator=(RendezvousLink&&) noexcept = default;
RendezvousLink::~RendezvousLink() = default;

Result<RendezvousLink> RendezvousLink::open(const std::string& socket_path) {
  if (socket_path.empty() || socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return make_error("the rendezvous socket's path '{}' is {}", socket_path,
                      socket_path.empty() ? "empty" : "too long for a unix socket");
  }
  return RendezvousLink(std::make_unique<Channel>(socket_path));
}

RendezvousLink RendezvousLink::open_tcp(const std::string& host, int port, std::string job) {
  return RendezvousLink(std::make_unique<Channel>(host, port, std::move(job)));
}

Result<RendezvousLink> RendezvousLink::open_from_environment() {
  const char* path = getenv("HVDRUN_RENDEZVOUS");
  if (path == nullptr) {
    return make_error(
        "HVDRUN_RENDEZVOUS is not set: this process was not started by hvdrun, which gives each "
        "worker its rendezvous");
  }
  return open(path);
}

Result<void> RendezvousLink::put(const std::string& key, std::string value,
                                 std::uint32_t generation, Timeout timeout) {
  v1::PutRequest request;
  request.set_key(key);
  request.set_value(std::move(value));
  request.set_generation(generation);
  v1::PutReply reply;
  return channel_->call(&v1::Rendezvous::Stub::Put, request, &reply,
                        fmt::format("rendezvous: put of '{}'", key), timeout);
}

Result<std::string> RendezvousLink::get(const std::string& key, std::uint32_t generation,
                                        Timeout timeout) {
  v1::GetRequest request;
  request.set_key(key);
  request.set_generation(generation);
  v1::GetReply reply;
  auto done = channel_->call(&v1::Rendezvous::Stub::Get, request, &reply,
                             fmt::format("rendezvous: get of '{}'", key), timeout);
  if (!done) return tl::unexpected(std::move(done.error()));
  return std::move(*reply.mutable_value());
}

Result<void> RendezvousLink::barrier(const std::string& name, std::uint32_t generation,
                                     std::uint32_t rank, std::uint32_t size, Timeout timeout) {
  v1::BarrierRequest request;
  request.set_name(name);
  request.set_generation(generation);
  request.set_rank(rank);
  request.set_size(size);
  v1::BarrierReply reply;
  return channel_->call(&v1::Rendezvous::Stub::Barrier, request, &reply,
                        fmt::format("rendezvous: barrier '{}' of rank {}", name, rank), timeout);
}

Result<std::vector<std::string>> RendezvousLink::register_worker(
    const hvdrun::v1::Registration& registration, Timeout timeout) {
  v1::RegisterReply reply;
  auto done = channel_->call(&v1::Rendezvous::Stub::Register, registration, &reply,
                             fmt::format("registration of rank {}", registration.rank()), timeout);
  if (!done) return tl::unexpected(std::move(done.error()));
  return std::vector<std::string>(reply.warnings().begin(), reply.warnings().end());
}

}  // namespace hvd
