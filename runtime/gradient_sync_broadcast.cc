// One rank's tensors become everybody's: packed by type into flat pieces, so that many small ones
// cost few broadcasts.
#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "hvdrun/gradient_synchronizer.h"
#include "runtime/gradient_sync_cuda.h"
#include "runtime/gradient_sync_plan.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxPieceBytes = 25UL << 20;

using Pack = std::vector<at::Tensor>;  // of one type; of at most one piece, or a single tensor

// tensors: sorted by name, which is the same on all ranks.
std::vector<Pack> packs_of(std::vector<NamedParameter>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.tensor.scalar_type() < b.tensor.scalar_type();
  });
  std::vector<Pack> packs;
  std::size_t num_bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    num_bytes += tensor.nbytes();
    const bool fits = !packs.empty() && num_bytes <= kMaxPieceBytes &&
                      packs.back().front().scalar_type() == tensor.scalar_type();
    if (!fits) {
      packs.emplace_back();
      num_bytes = tensor.nbytes();
    }
    packs.back().push_back(tensor);
  }
  return packs;
}

c10::Device device_of(const Communicator& communicator) {
  if (communicator.device_kind() == DeviceKind::kCpu) return {c10::kCPU};
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
}

// Bytes, so that any type travels.
Result<void> broadcast_bytes(const at::Tensor& flat, Communicator& communicator, int root,
                             const Call& call) {
  auto* const data = static_cast<std::byte*>(flat.mutable_data_ptr());
  for (std::size_t begin = 0; begin < flat.nbytes(); begin += kMaxPieceBytes) {
    const std::size_t length = std::min(kMaxPieceBytes, flat.nbytes() - begin);
    const auto done = communicator.broadcast(data + begin, length, DataType::kUint8, root, call);
    if (!done) return collective_error(communicator, done.error());
  }
  const auto done = communicator.wait(call);
  if (!done) return collective_error(communicator, done.error());
  return {};
}

// In the order of indices, whatever the strides.
Result<void> broadcast_pack(const Pack& pack, Communicator& communicator, int root,
                            const Call& call) {
  std::int64_t total = 0;
  for (const at::Tensor& tensor : pack) total += tensor.numel();
  const c10::Device device = device_of(communicator);
  const at::Tensor flat =
      at::empty({total}, pack.front().options().device(device).requires_grad(false));
  std::vector<at::Tensor> parts;
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : pack) {
    parts.push_back(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
  const bool is_root = communicator.rank() == root;
  for (std::size_t i = 0; is_root && i < pack.size(); ++i) parts[i].copy_(pack[i]);
  if (!device.is_cpu()) current_stream(device).synchronize();
  if (auto done = broadcast_bytes(flat, communicator, root, call); !done) return done;
  for (std::size_t i = 0; !is_root && i < pack.size(); ++i) at::Tensor(pack[i]).copy_(parts[i]);
  return {};
}

Result<void> broadcast_all(std::vector<NamedParameter> tensors, Communicator& communicator,
                           int root, const Call& call) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const at::NoGradGuard no_grad;
  if (auto checked = check_plan(plan_of_tensors(tensors), communicator, call); !checked) {
    return checked;
  }
  for (const Pack& pack : packs_of(tensors)) {
    if (auto done = broadcast_pack(pack, communicator, root, call); !done) return done;
  }
  return {};
}

Result<void> broadcast(std::string_view what, std::vector<NamedParameter> tensors,
                       Communicator& communicator, int root, const Call& call) {
  try {
    auto done = broadcast_all(std::move(tensors), communicator, root, call);
    if (!done) return tl::unexpected(done.error().within(what));
    return done;
  } catch (const std::exception& exception) {
    return worker_error(WorkerExit::kInternal, "{}: {}", what, exception.what());
  }
}

}  // namespace

Result<void> broadcast_parameters(std::vector<NamedParameter> tensors, Communicator& communicator,
                                  int root, const Call& call) {
  return broadcast("parameters of the ranks", std::move(tensors), communicator, root, call);
}

Result<void> broadcast_optimizer_state(std::vector<NamedParameter> tensors,
                                       Communicator& communicator, int root, const Call& call) {
  return broadcast("optimiser state of the ranks", std::move(tensors), communicator, root, call);
}

}  // namespace hvd
