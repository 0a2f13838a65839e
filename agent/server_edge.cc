#include "agent/server_edge.h"

#include <grpc/grpc.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace hvd {
namespace {

constexpr int kMaxMessage = 16 << 20;

}  // namespace

std::unique_ptr<grpc::Server> start_server(grpc::Service* service) {
  // Never given back: the last grpc_shutdown() waits up to ten seconds for connections that its own
  // threads, which have ended by then, would have to release. The process ends right after.
  grpc_init();
  grpc::ServerBuilder builder;
  builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.SetMaxSendMessageSize(kMaxMessage);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  return builder.BuildAndStart();
}

void shut_down_server(grpc::Server* server, Loop& loop, std::chrono::milliseconds limit,
                      std::function<void()> done) {
  if (server == nullptr) return boost::asio::post(loop, std::move(done));
  auto helper = std::make_shared<std::thread>();
  auto finish = [helper, keep_running = boost::asio::make_work_guard(loop),
                 done = std::move(done)] {
    helper->join();  // it may still be inside post()
    done();
  };
  *helper = std::thread([server, &loop, limit, finish = std::move(finish)]() mutable {
    server->Shutdown(std::chrono::system_clock::now() + limit);
    boost::asio::post(loop, std::move(finish));
  });
}

}  // namespace hvd
