// A call of the Rendezvous service as a request to the store, and the store's answer as its status:
// what every server of that service shares. Pure.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "hvdrun/v1/agent.pb.h"
#include "hvdrun/v1/rendezvous.pb.h"
#include "proto/v1.h"

namespace hvd {

// gRPC gives a call without a deadline the end of time; the store needs a number.
inline constexpr std::chrono::hours kLongestStoreCall{24 * 365};

// What is left of the call's own time.
inline std::int64_t store_timeout_ms(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  const auto bounded = std::clamp<std::chrono::system_clock::duration>(
      left, std::chrono::milliseconds(1), kLongestStoreCall);
  return std::chrono::duration_cast<std::chrono::milliseconds>(bounded).count();
}

inline hvdrun::v1::StoreRequest store_request(const hvdrun::v1::PutRequest& asked) {
  hvdrun::v1::StoreRequest request;
  request.mutable_put()->set_key(asked.key());
  request.mutable_put()->set_value(asked.value());
  request.mutable_put()->set_generation(asked.generation());
  return request;
}

inline hvdrun::v1::StoreRequest store_request(const hvdrun::v1::GetRequest& asked,
                                              std::int64_t timeout_ms) {
  hvdrun::v1::StoreRequest request;
  request.mutable_get()->set_key(asked.key());
  request.mutable_get()->set_generation(asked.generation());
  request.mutable_get()->set_timeout_ms(timeout_ms);
  return request;
}

inline hvdrun::v1::StoreRequest store_request(const hvdrun::v1::BarrierRequest& asked,
                                              std::int64_t timeout_ms) {
  hvdrun::v1::StoreRequest request;
  hvdrun::v1::StoreBarrier* barrier = request.mutable_barrier();
  barrier->set_name(asked.name());
  barrier->set_generation(asked.generation());
  barrier->set_rank(asked.rank());
  barrier->set_size(asked.size());
  barrier->set_timeout_ms(timeout_ms);
  return request;
}

inline hvdrun::v1::StoreRequest store_request(const hvdrun::v1::Registration& asked,
                                              std::int64_t timeout_ms) {
  hvdrun::v1::StoreRequest request;
  *request.mutable_registration()->mutable_registration() = asked;
  request.mutable_registration()->set_timeout_ms(timeout_ms);
  return request;
}

inline grpc::Status store_status(const hvdrun::v1::StoreReply& reply) {
  switch (reply.status()) {
    case hvdrun::v1::STORE_STATUS_OK:
      return grpc::Status::OK;
    case hvdrun::v1::STORE_STATUS_TIMEOUT:
      return {grpc::StatusCode::DEADLINE_EXCEEDED, reply.text()};
    case hvdrun::v1::STORE_STATUS_CONFLICT:
      return {grpc::StatusCode::ALREADY_EXISTS, reply.text()};
    case hvdrun::v1::STORE_STATUS_TOO_LARGE:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, reply.text()};
    case hvdrun::v1::STORE_STATUS_CANCELLED:
      return {grpc::StatusCode::UNAVAILABLE, reply.text()};
    case hvdrun::v1::STORE_STATUS_MISMATCH:
      return {grpc::StatusCode::FAILED_PRECONDITION, reply.text()};
    default:
      return {grpc::StatusCode::INTERNAL, "the store sent an unknown status"};
  }
}

}  // namespace hvd
