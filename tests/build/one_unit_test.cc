// One translation unit with everything that a training worker is made of: gRPC, protobuf, fmt,
// nlohmann JSON and libtorch. Proves that the copies of protobuf and fmt in the wheel shadow
// nothing, and that all of it runs in one process.
#include <fmt/core.h>
#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "training/torch.h"

namespace {

TEST(OneUnit, HeadersAreDebiansNotTheWheels) {
  EXPECT_EQ(FMT_VERSION / 10000, 9);
  EXPECT_EQ(GOOGLE_PROTOBUF_VERSION / 1000000, 3);
  EXPECT_EQ(google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION), "3.21.12");
}

TEST(OneUnit, TorchComputesAGradient) {
  at::Tensor x = at::full({3}, 2.0).requires_grad_();
  (x * x).sum().backward();
  const nlohmann::json gradient = {x.grad()[0].item<double>(), x.grad()[2].item<double>()};
  EXPECT_EQ(fmt::format("{}", gradient.dump()), "[4.0,4.0]");
}

TEST(OneUnit, GrpcAnswersBesideTorch) {
  hvdrun::v1::Rendezvous::Service unimplemented;
  grpc::ServerBuilder builder;
  builder.RegisterService(&unimplemented);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const auto stub = hvdrun::v1::Rendezvous::NewStub(server->InProcessChannel({}));
  grpc::ClientContext context;
  hvdrun::v1::GetReply reply;
  const grpc::Status status = stub->Get(&context, hvdrun::v1::GetRequest(), &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  server->Shutdown();
}

}  // namespace
