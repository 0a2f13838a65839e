#include "agent/store_relay.h"

#include <fmt/format.h>

#include <utility>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

v1::StoreReply refusal(v1::StoreStatus status, std::string text) {
  v1::StoreReply reply;
  reply.set_status(status);
  reply.set_text(std::move(text));
  return reply;
}

const std::string& key_of(const v1::StoreRequest& request) {
  switch (request.op_case()) {
    case v1::StoreRequest::kPut:
      return request.put().key();
    case v1::StoreRequest::kGet:
      return request.get().key();
    default:
      return request.barrier().name();
  }
}

}  // namespace

std::uint64_t StoreRelay::start(v1::StoreRequest request, StoreCall* call) {
  if (end_text_) {
    call->answer(refusal(v1::STORE_STATUS_CANCELLED, *end_text_));
    return 0;
  }
  if (pending_.size() >= kMaxPending) {
    call->answer(refusal(
        v1::STORE_STATUS_TOO_LARGE,
        fmt::format("{} calls to the job's store are open on this node already", pending_.size())));
    return 0;
  }
  request.set_id(++last_id_);
  pending_.emplace(last_id_, call);
  send_(std::move(request));
  return last_id_;
}

void StoreRelay::cancel(std::uint64_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  StoreCall* const call = found->second;
  pending_.erase(found);
  call->answer(refusal(v1::STORE_STATUS_CANCELLED, "the caller has gone"));
  v1::StoreRequest request;
  request.set_id(++last_id_);
  request.set_cancel(id);
  send_(std::move(request));
}

void StoreRelay::take_reply(const v1::StoreReply& reply) {
  const auto found = pending_.find(reply.id());
  if (found == pending_.end()) return;
  StoreCall* const call = found->second;
  pending_.erase(found);
  call->answer(reply);
}

void StoreRelay::end_all(const std::string& text) {
  end_text_ = text;
  const auto open = std::exchange(pending_, {});
  for (const auto& [id, call] : open) call->answer(refusal(v1::STORE_STATUS_CANCELLED, text));
}

std::optional<std::string> check_store_request(const v1::StoreRequest& request) {
  if (request.has_registration()) {
    const std::size_t bytes = request.ByteSizeLong();
    if (bytes <= StoreRelay::kMaxRegistrationBytes) return std::nullopt;
    return fmt::format("the registration has {} bytes; at most {} are allowed", bytes,
                       StoreRelay::kMaxRegistrationBytes);
  }
  const std::string& key = key_of(request);
  if (key.empty()) return "the key is empty";
  if (key.size() > StoreRelay::kMaxKeyBytes) {
    return fmt::format("the key has {} bytes; at most {} are allowed", key.size(),
                       StoreRelay::kMaxKeyBytes);
  }
  const std::size_t size = request.put().value().size();
  if (size > StoreRelay::kMaxValueBytes) {
    return fmt::format("the value has {} bytes; at most {} are allowed", size,
                       StoreRelay::kMaxValueBytes);
  }
  return std::nullopt;
}

}  // namespace hvd
