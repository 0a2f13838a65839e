#include "runtime/recorded_communicator.h"

#include <algorithm>

#include "base/clock.h"

namespace hvd {

template <typename Operation>
Result<void> RecordedCommunicator::record(const char* name, std::uint64_t num_bytes,
                                          const Call& call, Operation operation) {
  const std::uint64_t sequence =
      recorder_.schedule(fmt::format("tcp:{}", name), -1, num_bytes, call.timeout);
  recorder_.mark_started(sequence, boottime_now());
  bool is_ours = false;  // whoever calls this may have said already what is in flight
  board_.update([&](Activity& activity) {
    activity.scheduled = std::max(activity.scheduled, sequence);
    is_ours = activity.waiting_for.empty();
    if (is_ours) activity.waiting_for = name;
  });
  auto done = operation();
  if (!done) return done;
  recorder_.mark_completed(sequence, boottime_now());
  board_.update([&](Activity& activity) {
    activity.completed = std::max(activity.completed, sequence);
    if (is_ours) activity.waiting_for.clear();
  });
  return done;
}

Result<void> RecordedCommunicator::all_reduce(void* data, std::size_t count, DataType type,
                                              const Reduction& reduction, const Call& call) {
  return record("all_reduce", count * size_of(type), call,
                [&] { return inner_->all_reduce(data, count, type, reduction, call); });
}

Result<void> RecordedCommunicator::broadcast(void* data, std::size_t count, DataType type, int root,
                                             const Call& call) {
  return record("broadcast", count * size_of(type), call,
                [&] { return inner_->broadcast(data, count, type, root, call); });
}

Result<void> RecordedCommunicator::all_gather(const void* input, void* output, std::size_t count,
                                              DataType type, const Call& call) {
  return record("all_gather", count * size_of(type), call,
                [&] { return inner_->all_gather(input, output, count, type, call); });
}

Result<void> RecordedCommunicator::reduce_scatter(const void* input, void* output,
                                                  std::size_t count, DataType type,
                                                  const Reduction& reduction, const Call& call) {
  return record("reduce_scatter", count * size_of(type), call, [&] {
    return inner_->reduce_scatter(input, output, count, type, reduction, call);
  });
}

Result<void> RecordedCommunicator::barrier(const Call& call) {
  return record("barrier", 0, call, [&] { return inner_->barrier(call); });
}

Result<void> RecordedCommunicator::finalize(const Call& call) {
  return record("finalize", 0, call, [&] { return inner_->finalize(call); });
}

}  // namespace hvd
