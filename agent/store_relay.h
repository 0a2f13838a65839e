// Calls of this node's workers to the job's key-value store, on their way to the launcher and back.
// Each gets an id; the launcher's reply, the worker's leaving or the job's end answers it, once.
//
// Lifecycle: as long as the job; end_all() refuses everything from then on. Thread: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "hvdrun/v1/agent.pb.h"

namespace hvd {

// One worker's call as the relay sees it. answer() is called exactly once; the call stays alive
// until then.
class StoreCall {
 public:
  virtual ~StoreCall() = default;
  virtual void answer(const hvdrun::v1::StoreReply& reply) = 0;
};

class StoreRelay {
 public:
  static constexpr std::size_t kMaxKeyBytes = 256;
  static constexpr std::size_t kMaxValueBytes = 1u << 20;
  static constexpr std::size_t kMaxRegistrationBytes = 65536;
  static constexpr std::size_t kMaxPending = 4096;

  using Send = std::function<void(hvdrun::v1::StoreRequest)>;
  explicit StoreRelay(Send send) : send_(std::move(send)) {}

  // Sends it with a new id, which it returns; answers at once if the relay has ended or is full
  // (0).
  std::uint64_t start(hvdrun::v1::StoreRequest request, StoreCall* call);

  // The worker has gone: the launcher need not answer any more, the call is answered here.
  void cancel(std::uint64_t id);

  // From the launcher; an id that is no longer known is no error.
  void take_reply(const hvdrun::v1::StoreReply& reply);

  // Answers all open calls, and every later one, with CANCELLED and this text.
  void end_all(const std::string& text);

  [[nodiscard]] std::size_t num_pending() const { return pending_.size(); }

 private:
  const Send send_;
  std::unordered_map<std::uint64_t, StoreCall*> pending_;  // not owned
  std::optional<std::string> end_text_;
  std::uint64_t last_id_ = 0;
};

// Why a request may not be sent at all (key or value too large, no key); nullopt if it may. Pure.
[[nodiscard]] std::optional<std::string> check_store_request(
    const hvdrun::v1::StoreRequest& request);

}  // namespace hvd
