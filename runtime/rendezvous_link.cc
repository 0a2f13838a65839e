#include "runtime/rendezvous_link.h"

#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <string_view>
#include <utility>

#include "hvdrun/v1/rendezvous.grpc.pb.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// gRPC reads "unix:PATH" as a URI: bytes that mean something there are escaped.
std::string target_of(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~";
  std::string target = "unix:";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      target += c;
    } else {
      target += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return target;
}

std::shared_ptr<grpc::Channel> connect(const std::string& path) {
  grpc::ChannelArguments arguments;
  // A proxy of the user is for the outside world.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(target_of(path), grpc::InsecureChannelCredentials(), arguments);
}

// The gRPC library's own words for a deadline say nothing; the store's do.
bool is_from_store(const grpc::Status& status) {
  return !status.error_message().empty() && status.error_message() != "Deadline Exceeded";
}

Error error_of(const grpc::Status& status, const std::string& what, const std::string& path,
               std::chrono::milliseconds timeout) {
  Error error;
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      error.code = ExitCode::kTimeout;
      error.message = fmt::format("{}: no answer within {} ms", what, timeout.count());
      if (is_from_store(status)) error.message += " (" + status.error_message() + ")";
      return error;
    case grpc::StatusCode::UNAVAILABLE:
      error.may_retry = true;
      error.message =
          fmt::format("{}: the agent of this node or its launcher cannot be reached by {}: {}",
                      what, path, status.error_message());
      return error;
    case grpc::StatusCode::UNIMPLEMENTED:
      error.message = fmt::format("{}: whoever listens on {} is no agent of hvdrun of this version",
                                  what, path);
      return error;
    default:
      error.message = fmt::format("{}: {}", what, status.error_message());
      return error;
  }
}

}  // namespace

struct RendezvousLink::Channel {
  explicit Channel(std::string socket_path)
      : path(std::move(socket_path)), stub(v1::Rendezvous::NewStub(connect(path))) {}

  // One call of the stub with its deadline.
  template <typename Method, typename Request, typename Reply>
  Result<void> call(Method method, const Request& request, Reply* reply, const std::string& what,
                    Timeout timeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    const grpc::Status status = (stub.get()->*method)(&context, request, reply);
    if (status.ok()) return {};
    return tl::unexpected(error_of(status, what, path, timeout));
  }

  const std::string path;
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

}  // namespace hvd
