#include "proto/rendezvous_store.h"

#include <fmt/format.h>

#include "proto/waiting.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

void answer(StoreAnswers& out, std::pair<std::uint32_t, std::uint64_t> id, v1::StoreStatus status,
            std::string text = {}) {
  StoreAnswer& answer = out.emplace_back();
  answer.node = id.first;
  answer.reply.set_id(id.second);
  answer.reply.set_status(status);
  answer.reply.set_text(std::move(text));
}

std::string missing_text(const std::set<std::uint32_t>& came, std::uint32_t size) {
  std::string text;
  std::size_t num_missing = 0;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (came.contains(rank) || ++num_missing > kMaxMissingNamed) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  if (num_missing > kMaxMissingNamed) {
    text += fmt::format(" and {} more", num_missing - kMaxMissingNamed);
  }
  return text;
}

}  // namespace

StoreAnswers RendezvousStore::handle(std::uint32_t node, const v1::StoreRequest& request,
                                     SteadyTime now) {
  StoreAnswers out;
  const RequestId id{node, request.id()};
  switch (request.op_case()) {
    case v1::StoreRequest::kPut:
      put(id, request.put(), out);
      break;
    case v1::StoreRequest::kGet:
      get(id, request.get(), now, out);
      break;
    case v1::StoreRequest::kBarrier:
      barrier(id, request.barrier(), now, out);
      break;
    case v1::StoreRequest::kCancel:
      forget({node, request.cancel()});
      break;
    case v1::StoreRequest::kRegistration:  // the registration desk's
    case v1::StoreRequest::kFence:         // the PMI fence's
    case v1::StoreRequest::OP_NOT_SET:
      answer(out, id, v1::STORE_STATUS_CONFLICT, "the store does not know this request");
      break;
  }
  return out;
}

// What holds for every operation. True if the request was refused.
bool RendezvousStore::refuse(RequestId id, std::string_view what, const Name& name,
                             StoreAnswers& out) {
  if (end_reason_) {
    answer(out, id, v1::STORE_STATUS_CANCELLED, *end_reason_);
  } else if (name.second.empty() || name.second.size() > kMaxKey) {
    answer(out, id, v1::STORE_STATUS_TOO_LARGE,
           fmt::format("a {} needs a name of 1 to {} bytes, this one has {}", what, kMaxKey,
                       name.second.size()));
  } else if (name.first < generation_) {
    answer(out, id, v1::STORE_STATUS_CONFLICT,
           fmt::format("{} '{}' is of generation {}, the job is at generation {}", what,
                       name.second, name.first, generation_));
  } else if (waiting_.size() >= kMaxWaiting || waiting_.contains(id)) {
    answer(out, id, v1::STORE_STATUS_TOO_LARGE,
           fmt::format("{} '{}': too many requests are waiting", what, name.second));
  } else {
    return false;
  }
  return true;
}

void RendezvousStore::put(RequestId id, const v1::StorePut& put, StoreAnswers& out) {
  const Name name{put.generation(), put.key()};
  if (refuse(id, "key", name, out)) return;
  const auto found = values_.find(name);
  if (found != values_.end()) {
    const bool is_same = found->second == put.value();
    answer(out, id, is_same ? v1::STORE_STATUS_OK : v1::STORE_STATUS_CONFLICT,
           is_same ? "" : fmt::format("key '{}' has another value already", put.key()));
    return;
  }
  if (put.value().size() > kMaxValue) {
    answer(out, id, v1::STORE_STATUS_TOO_LARGE,
           fmt::format("key '{}': a value of {} bytes is over the limit of {}", put.key(),
                       put.value().size(), kMaxValue));
    return;
  }
  if (values_.size() >= kMaxKeys) {
    answer(out, id, v1::STORE_STATUS_TOO_LARGE,
           fmt::format("key '{}': the store holds its limit of {} keys", put.key(), kMaxKeys));
    return;
  }
  values_.emplace(name, put.value());
  answer(out, id, v1::STORE_STATUS_OK);
  answer_getters(name, put.value(), out);
}

void RendezvousStore::answer_getters(const Name& name, const std::string& value,
                                     StoreAnswers& out) {
  std::vector<RequestId> served;
  for (const auto& [id, waiting] : waiting_) {
    if (!waiting.rank && waiting.name == name) served.push_back(id);
  }
  for (const RequestId& id : served) {
    forget(id);
    answer(out, id, v1::STORE_STATUS_OK);
    out.back().reply.set_value(value);
  }
}

void RendezvousStore::get(RequestId id, const v1::StoreGet& get, SteadyTime now,
                          StoreAnswers& out) {
  const Name name{get.generation(), get.key()};
  if (refuse(id, "key", name, out)) return;
  if (const auto found = values_.find(name); found != values_.end()) {
    answer(out, id, v1::STORE_STATUS_OK);
    out.back().reply.set_value(found->second);
    return;
  }
  const Waiting waiting{name, answer_deadline(get.timeout_ms(), now), std::nullopt};
  if (get.timeout_ms() <= 0) return time_out(id, waiting, out);
  wait(id, waiting);
}

void RendezvousStore::barrier(RequestId id, const v1::StoreBarrier& request, SteadyTime now,
                              StoreAnswers& out) {
  const Name name{request.generation(), request.name()};
  if (refuse(id, "barrier", name, out)) return;
  const auto conflict = [&](std::string text) {
    answer(out, id, v1::STORE_STATUS_CONFLICT,
           fmt::format("barrier '{}': {}", request.name(), text));
  };
  if (request.rank() >= request.size()) {
    return conflict(fmt::format("rank {} of {} ranks", request.rank(), request.size()));
  }
  if (const auto found = barriers_.find(name); found != barriers_.end()) {
    const Barrier& open = found->second;
    if (open.size != request.size()) {
      return conflict(fmt::format("rank {} expects {} ranks, others {}", request.rank(),
                                  request.size(), open.size));
    }
    if (open.waiting.contains(request.rank())) {
      return conflict(fmt::format("rank {} waits there already", request.rank()));
    }
  }
  Barrier& open = barriers_[name];
  open.size = request.size();
  open.came.insert(request.rank());
  open.waiting.emplace(request.rank(), id);
  const Waiting waiting{name, answer_deadline(request.timeout_ms(), now), request.rank()};
  wait(id, waiting);
  // Only ranks that still wait pass together: one that has given up does not know of it.
  if (open.waiting.size() < open.size) return;
  for (const auto& [rank, waiter] : std::map(open.waiting)) {
    forget(waiter);
    answer(out, waiter, v1::STORE_STATUS_OK);
  }
}

void RendezvousStore::wait(RequestId id, Waiting waiting) {
  deadlines_.emplace(waiting.deadline, id);
  waiting_.emplace(id, std::move(waiting));
}

void RendezvousStore::time_out(RequestId id, const Waiting& waiting, StoreAnswers& out) {
  const std::string& name = waiting.name.second;
  if (!waiting.rank) {
    answer(out, id, v1::STORE_STATUS_TIMEOUT, fmt::format("key '{}' was not put in time", name));
    return;
  }
  const Barrier& barrier = barriers_.at(waiting.name);
  answer(
      out, id, v1::STORE_STATUS_TIMEOUT,
      barrier.came.size() == barrier.size
          ? fmt::format("barrier '{}': all {} ranks came, but some had given up before the "
                        "last one",
                        name, barrier.size)
          : fmt::format("barrier '{}': {} of {} ranks came, missing: {}", name, barrier.came.size(),
                        barrier.size, missing_text(barrier.came, barrier.size)));
}

// A barrier goes with its last waiting rank, so that its name can be used again.
void RendezvousStore::leave_barrier(const Waiting& waiting) {
  if (!waiting.rank) return;
  const auto found = barriers_.find(waiting.name);
  found->second.waiting.erase(*waiting.rank);
  if (found->second.waiting.empty()) barriers_.erase(found);
}

void RendezvousStore::forget(RequestId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  deadlines_.erase({found->second.deadline, id});
  leave_barrier(found->second);
  waiting_.erase(found);
}

StoreAnswers RendezvousStore::expire(SteadyTime now) {
  StoreAnswers out;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const RequestId id = deadlines_.begin()->second;
    time_out(id, waiting_.at(id), out);
    forget(id);
  }
  return out;
}

std::optional<SteadyTime> RendezvousStore::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void RendezvousStore::forget_node(std::uint32_t node) {
  std::vector<RequestId> gone;
  for (const auto& [id, waiting] : waiting_) {
    if (id.first == node) gone.push_back(id);
  }
  for (const RequestId& id : gone) forget(id);
}

StoreAnswers RendezvousStore::advance(std::uint32_t generation) {
  StoreAnswers out;
  generation_ = std::max(generation_, generation);
  std::erase_if(values_, [&](const auto& entry) { return entry.first.first < generation_; });
  std::vector<RequestId> old;
  for (const auto& [id, waiting] : waiting_) {
    if (waiting.name.first < generation_) old.push_back(id);
  }
  for (const RequestId& id : old) {
    answer(out, id, v1::STORE_STATUS_CONFLICT,
           fmt::format("'{}' is of a generation that has passed; the job is at generation {}",
                       waiting_.at(id).name.second, generation_));
    forget(id);
  }
  return out;
}

StoreAnswers RendezvousStore::cancel_all(std::string reason) {
  StoreAnswers out;
  for (const auto& [id, waiting] : waiting_) {
    answer(out, id, v1::STORE_STATUS_CANCELLED, reason);
  }
  waiting_.clear();
  deadlines_.clear();
  barriers_.clear();
  end_reason_ = std::move(reason);
  return out;
}

}  // namespace hvd
