// What the agent's two gRPC servers have in common: no listening port (connections are handed in as
// descriptors), no keepalive (such connections cannot be made anew), and the way they end.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>

#include "base/loop.h"

namespace hvd {

// Null if gRPC refuses. The service is not owned and outlives the server.
[[nodiscard]] std::unique_ptr<grpc::Server> start_server(grpc::Service* service);

// Server::Shutdown waits for calls that only the loop can finish, so a helper thread runs it;
// `done` runs on the loop, after all reactions of the server's calls, when no thread of the server
// touches the loop any more. What is not out after the limit is cut off; a peer that keeps an idle
// connection open costs all of it.
void shut_down_server(grpc::Server* server, Loop& loop, std::chrono::milliseconds limit,
                      std::function<void()> done);

}  // namespace hvd
