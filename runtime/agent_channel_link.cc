#include "runtime/agent_channel_link.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <string_view>

namespace hvd {
namespace {

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

std::shared_ptr<grpc::Channel> open_channel(const std::string& target) {
  grpc::ChannelArguments arguments;
  // A proxy of the user is for the outside world.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Without this all links of a process to one agent would share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

std::shared_ptr<grpc::Channel> channel_to_agent(const std::string& path) {
  return open_channel(target_of(path));
}

std::shared_ptr<grpc::Channel> channel_to_peer(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return open_channel(is_v6 ? fmt::format("dns:///[{}]:{}", host, port)
                            : fmt::format("dns:///{}:{}", host, port));
}

}  // namespace hvd
