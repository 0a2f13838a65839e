#include "runtime/tcp_communicator.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hvd {
namespace {

// Up to this many bytes of accumulators the number of exchanges counts, not their size.
constexpr std::size_t kMaxDoublingBytes = 32 * 1024;
// What is not reduced in place is reduced in pieces of this many elements, to bound the memory.
constexpr std::size_t kPieceElements = std::size_t{4} << 20U;

std::span<const std::byte> bytes_of(const std::byte* begin, std::size_t size) {
  return {begin, size};
}

OperationHeader header_of(CollectiveKind kind, std::size_t count, DataType type) {
  OperationHeader header;
  header.kind = kind;
  header.count = count;
  header.type = type;
  return header;
}

// The tree of a broadcast, in ranks relative to the root: the parent lacks the lowest bit, children
// add a lower one. Largest subtree first.
struct TreePlace {
  int parent = -1;
  std::vector<int> children;
};

TreePlace tree_place(int rank, int size, int root) {
  TreePlace place;
  const int relative = (rank - root + size) % size;
  int bit = 1;
  while (bit < size && (relative & bit) == 0) bit <<= 1;
  if (relative != 0) place.parent = (relative - bit + root) % size;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (relative + bit < size) place.children.push_back((relative + bit + root) % size);
  }
  return place;
}

}  // namespace

std::byte* TcpCommunicator::Buffer::of_size(std::size_t wanted) {
  if (wanted > size) {
    bytes = std::make_unique_for_overwrite<std::byte[]>(wanted);
    size = wanted;
  }
  return bytes.get();
}

template <typename Body>
Result<void> TcpCommunicator::run(const OperationHeader& header, const Call& call, Body body) {
  if (is_in_use_.exchange(true)) {
    return make_error("{}: another thread is inside this communicator", name_of(header.kind));
  }
  if (is_finalized_) {
    is_in_use_ = false;
    return make_error("{}: the communicator is finalized", name_of(header.kind));
  }
  OperationHeader numbered = header;
  numbered.sequence = ++sequence_;
  TcpOperation operation(mesh_.get(), numbered, call.timeout);
  mesh_->read_control();
  const bool is_done = !mesh_->has_failed() && body(operation);
  is_in_use_ = false;
  if (is_done) return {};
  return error(header);
}

Result<void> TcpCommunicator::error(const OperationHeader& header) const {
  const auto failed = mesh_->failure();
  const bool is_late = failed && failed->kind == CommunicatorFailure::Kind::kDeadline;
  return make_error(is_late ? ExitCode::kTimeout : ExitCode::kInfrastructure, "{}: {}",
                    name_of(header.kind), failed ? failed->message : "failed");
}

Result<void> TcpCommunicator::all_reduce(void* data, std::size_t count, DataType type,
                                         const Reduction& reduction, const Call& call) {
  const auto plan = plan_reduction(type, reduction, size());
  if (!plan) return tl::unexpected(plan.error().within("all-reduce"));
  OperationHeader header = header_of(CollectiveKind::kAllReduce, count, type);
  header.op = reduction.op;
  return run(header, call, [&](TcpOperation& operation) {
    if (count * plan->accumulator_size <= kMaxDoublingBytes) {
      return all_reduce_by_doubling(operation, data, count, *plan);
    }
    return all_reduce_by_ring(operation, static_cast<std::byte*>(data), count, *plan);
  });
}

bool TcpCommunicator::all_reduce_by_doubling(TcpOperation& operation, void* data, std::size_t count,
                                             const ReductionPlan& plan) {
  auto* own = static_cast<std::byte*>(data);
  if (plan.has_load) {
    own = accumulators_.of_size(count * plan.accumulator_size);
    plan.load(own, data, count);
  }
  if (!exchange(operation, own, count, &plan)) return false;
  if (plan.has_store || own != data) plan.store(data, own, count);
  return true;
}

// Recursive doubling: after step k a rank holds what 2^(k+1) neighbours hold together. Ranks beyond
// the largest power of two hand their part to a partner first and get the result from it at the
// end. Both of a pair combine in the same order, so all get the same bits. plan: null for count 0.
bool TcpCommunicator::exchange(TcpOperation& operation, std::byte* own, std::size_t count,
                               const ReductionPlan* plan) {
  const std::size_t bytes = count > 0 ? count * plan->accumulator_size : 0;
  std::byte* const theirs = received_.of_size(bytes);
  const int regular = static_cast<int>(std::bit_floor(static_cast<unsigned>(size())));
  const auto move = [&](int part, int from, std::byte* to_place, int to) {
    IncomingBlock incoming({to_place, bytes});
    OutgoingBlock outgoing(bytes_of(own, bytes));
    const ReceiveFrom receiver{from, &incoming};
    const SendTo sender{to, &outgoing};
    return operation.run(static_cast<std::uint16_t>(part), {&receiver, from >= 0 ? 1U : 0U},
                         {&sender, to >= 0 ? 1U : 0U});
  };
  const auto combine = [&](bool is_low) {
    if (count > 0) plan->combine(own, is_low ? own : theirs, is_low ? theirs : own, count);
  };
  constexpr int kHandIn = 100;
  constexpr int kHandOut = 101;
  if (rank() >= regular) {
    return move(kHandIn, -1, nullptr, rank() - regular) &&
           move(kHandOut, rank() - regular, own, -1);
  }
  const bool has_partner = rank() + regular < size();
  if (has_partner) {
    if (!move(kHandIn, rank() + regular, theirs, -1)) return false;
    combine(true);
  }
  for (int bit = 1, part = 0; bit < regular; bit <<= 1, ++part) {
    const int peer = rank() ^ bit;
    if (!move(part, peer, theirs, peer)) return false;
    combine(rank() < peer);
  }
  return !has_partner || move(kHandOut, -1, nullptr, rank() + regular);
}

bool TcpCommunicator::all_reduce_by_ring(TcpOperation& operation, std::byte* data,
                                         std::size_t count, const ReductionPlan& plan) {
  const std::size_t piece = plan.is_in_place ? count : std::min(count, kPieceElements);
  if (!plan.is_in_place) accumulators_.of_size(piece * plan.accumulator_size);
  std::uint16_t part = 0;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    TcpRing::Data of_ring;
    of_ring.count = std::min(piece, count - begin);
    of_ring.element_size = plan.element_size;
    of_ring.elements = data + begin * plan.element_size;
    of_ring.accumulators = plan.is_in_place ? of_ring.elements : accumulators_.bytes.get();
    of_ring.reduced =
        of_ring.elements + block_range(of_ring.count, size(), rank()).offset * plan.element_size;
    of_ring.plan = &plan;
    of_ring.scratch = &scratch_;
    if (plan.has_load) plan.load(of_ring.accumulators, of_ring.elements, of_ring.count);
    TcpRing ring(rank(), size(), TcpRing::Halves::kBoth, of_ring);
    if (!run_ring(operation, part++, ring)) return false;
  }
  return true;
}

bool TcpCommunicator::run_ring(TcpOperation& operation, std::uint16_t part, TcpRing& ring) {
  const ReceiveFrom receiver{(rank() - 1 + size()) % size(), &ring};
  const SendTo sender{(rank() + 1) % size(), &ring};
  return operation.run(part, {&receiver, 1}, {&sender, 1});
}

Result<void> TcpCommunicator::broadcast(void* data, std::size_t count, DataType type, int root,
                                        const Call& call) {
  if (root < 0 || root >= size()) {
    return make_error("broadcast: there is no rank {} among {}", root, size());
  }
  OperationHeader header = header_of(CollectiveKind::kBroadcast, count, type);
  header.root = root;
  return run(header, call, [&](TcpOperation& operation) {
    // A root hears from nobody in the tree: that all mean the same one is asked first.
    if (!exchange(operation, nullptr, 0, nullptr)) return false;
    const TreePlace place = tree_place(rank(), size(), root);
    const std::size_t bytes = count * size_of(type);
    IncomingBlock incoming({static_cast<std::byte*>(data), bytes});
    if (rank() == root) incoming.received(bytes);
    std::vector<std::unique_ptr<OutgoingCopy>> copies;
    std::vector<SendTo> senders;
    for (const int child : place.children) {
      copies.push_back(std::make_unique<OutgoingCopy>(&incoming));
      senders.push_back({child, copies.back().get()});
    }
    const ReceiveFrom receiver{place.parent, &incoming};
    constexpr int kTree = 200;  // beside the parts of exchange()
    return operation.run(kTree, {&receiver, place.parent >= 0 ? 1U : 0U}, senders);
  });
}

Result<void> TcpCommunicator::all_gather(const void* input, void* output, std::size_t count,
                                         DataType type, const Call& call) {
  return run(header_of(CollectiveKind::kAllGather, count, type), call,
             [&](TcpOperation& operation) {
               TcpRing::Data data;
               data.count = count * static_cast<std::size_t>(size());
               data.element_size = size_of(type);
               data.elements = static_cast<std::byte*>(output);
               const std::size_t bytes = count * data.element_size;
               std::byte* const own = data.elements + static_cast<std::size_t>(rank()) * bytes;
               if (bytes > 0 && own != input) std::memcpy(own, input, bytes);
               TcpRing ring(rank(), size(), TcpRing::Halves::kGather, data);
               return run_ring(operation, 0, ring);
             });
}

Result<void> TcpCommunicator::reduce_scatter(const void* input, void* output, std::size_t count,
                                             DataType type, const Reduction& reduction,
                                             const Call& call) {
  const auto plan = plan_reduction(type, reduction, size());
  if (!plan) return tl::unexpected(plan.error().within("reduce-scatter"));
  OperationHeader header = header_of(CollectiveKind::kReduceScatter, count, type);
  header.op = reduction.op;
  return run(header, call, [&](TcpOperation& operation) {
    TcpRing::Data data;
    data.count = count * static_cast<std::size_t>(size());
    data.accumulators = accumulators_.of_size(data.count * plan->accumulator_size);
    data.reduced = static_cast<std::byte*>(output);
    data.plan = &*plan;
    data.scratch = &scratch_;
    plan->load(data.accumulators, input, data.count);
    TcpRing ring(rank(), size(), TcpRing::Halves::kReduce, data);
    return run_ring(operation, 0, ring);
  });
}

Result<void> TcpCommunicator::barrier(const Call& call) {
  return run(header_of(CollectiveKind::kBarrier, 0, DataType::kUint8), call,
             [&](TcpOperation& operation) { return exchange(operation, nullptr, 0, nullptr); });
}

void TcpCommunicator::abort(std::string_view reason) {
  mesh_->fail({CommunicatorFailure::Kind::kAborted, rank(),
               fmt::format("{} aborted: {}", mesh_->describe(rank()), reason)});
}

Result<void> TcpCommunicator::finalize(const Call& call) {
  auto ended =
      run(header_of(CollectiveKind::kFinalize, 0, DataType::kUint8), call,
          [&](TcpOperation& operation) { return exchange(operation, nullptr, 0, nullptr); });
  if (ended) {
    mesh_->leave();
    is_finalized_ = true;
  }
  return ended;
}

}  // namespace hvd
