#include "launcher/pmi_fence.h"

#include <fmt/format.h>

#include <utility>

namespace hvd {
namespace {

StoreAnswer answer_to(std::uint32_t node, std::uint64_t id, v1::StoreStatus status,
                      std::string text = {}) {
  StoreAnswer answer;
  answer.node = node;
  answer.reply.set_id(id);
  answer.reply.set_status(status);
  answer.reply.set_text(std::move(text));
  return answer;
}

}  // namespace

StoreAnswers PmiFence::take(std::uint32_t node, std::uint64_t id, const v1::StoreFence& fence) {
  const bool is_next = fence.sequence() == num_passed_ + 1;
  if (!nodes_.contains(node) || !is_next || arrived_.contains(node)) {
    return {answer_to(node, id, v1::STORE_STATUS_CONFLICT,
                      fmt::format("node {} came to barrier {}, the job is at barrier {}", node,
                                  fence.sequence(), num_passed_ + 1))};
  }
  arrived_.emplace(node, Arrival{id, fence.puts()});
  if (arrived_.size() < nodes_.size()) return {};
  return pass();
}

// Messages of the same kind, one behind the other, are one message with the fields of all.
StoreAnswers PmiFence::pass() {
  ++num_passed_;
  const auto arrived = std::exchange(arrived_, {});
  std::size_t num_bytes = 0;
  for (const auto& [node, arrival] : arrived) num_bytes += arrival.puts.size();
  StoreAnswers out;
  for (const auto& [node, arrival] : arrived) {
    if (num_bytes > kMaxBytes) {
      out.push_back(answer_to(node, arrival.id, v1::STORE_STATUS_TOO_LARGE,
                              fmt::format("its nodes have put {} bytes of keys and values since "
                                          "the last one; {} can be exchanged",
                                          num_bytes, kMaxBytes)));
      continue;
    }
    StoreAnswer answer = answer_to(node, arrival.id, v1::STORE_STATUS_OK);
    for (const auto& [other, others] : arrived) {
      if (other != node) answer.reply.mutable_value()->append(others.puts);
    }
    out.push_back(std::move(answer));
  }
  return out;
}

}  // namespace hvd
