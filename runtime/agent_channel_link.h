// A gRPC channel to the node's agent on its unix socket. Opening does not connect; the first call
// does.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace hvd {

[[nodiscard]] std::shared_ptr<grpc::Channel> channel_to_agent(const std::string& path);

// What a rank says of itself with each call to rank 0: which job it belongs to (job_identity.h).
inline constexpr const char* kJobMetadata = "hvdrun-job";

// To rank 0 of a job without agents (peer_store_edge.h): a name or an address, over TCP.
[[nodiscard]] std::shared_ptr<grpc::Channel> channel_to_peer(const std::string& host, int port);

}  // namespace hvd
