#include "runtime/arrival_order.h"

#include <algorithm>

#include "runtime/worker_exit.h"

namespace hvd {
namespace {

bool is_permutation(const std::vector<std::int64_t>& order) {
  std::vector<bool> is_there(order.size(), false);
  for (const std::int64_t tensor : order) {
    if (tensor < 0 || tensor >= static_cast<std::int64_t>(order.size())) return false;
    is_there[static_cast<std::size_t>(tensor)] = true;
  }
  return std::find(is_there.begin(), is_there.end(), false) == is_there.end();
}

}  // namespace

std::vector<std::int64_t> order_of_arrival(std::span<const std::size_t> arrivals,
                                           std::size_t num_tensors) {
  std::vector<bool> is_placed(num_tensors, false);
  std::vector<std::int64_t> order;
  for (std::size_t i = arrivals.size(); i-- > 0;) {
    if (is_placed[arrivals[i]]) continue;
    is_placed[arrivals[i]] = true;
    order.push_back(static_cast<std::int64_t>(arrivals[i]));
  }
  std::reverse(order.begin(), order.end());
  for (std::size_t tensor = 0; tensor < num_tensors; ++tensor) {
    if (!is_placed[tensor]) order.push_back(static_cast<std::int64_t>(tensor));
  }
  return order;
}

Result<std::vector<std::int64_t>> adopt_order(std::vector<std::int64_t> own,
                                              Communicator& communicator, const Call& call) {
  const auto done = communicator.broadcast(own.data(), own.size(), DataType::kInt64, 0, call);
  if (!done) {
    return collective_error(communicator, done.error().within("order of the gradients"));
  }
  if (!is_permutation(own)) {
    return worker_error(WorkerExit::kMismatch,
                        "rank {}: rank 0's order of the gradients is not one of these {} tensors",
                        communicator.rank(), own.size());
  }
  return own;
}

}  // namespace hvd
