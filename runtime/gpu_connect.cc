#include "runtime/gpu_connect.h"

#include <utility>

#ifdef HVDRUN_HAVE_NCCL
#include "base/clock.h"
#include "runtime/nccl_communicator.h"
#include "runtime/nccl_device.h"
#endif

namespace hvd {

#ifdef HVDRUN_HAVE_NCCL
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What rank 0 leaves: an id, or why there is none, so that the others need not wait for their
// limit.
constexpr char kIsId = '+';
constexpr char kIsReason = '-';

Result<std::string> leave_id(TcpRendezvous& rendezvous, const std::string& key,
                             milliseconds timeout) {
  auto id = nccl_unique_id();
  const std::string value = id ? kIsId + *id : kIsReason + id.error().message;
  const auto put = rendezvous.put(key, value, timeout);
  if (id && !put) return tl::unexpected(put.error());
  return id;
}

Result<std::string> shared_id(TcpRendezvous& rendezvous, const GpuConnect& settings) {
  const std::string key = fmt::format("nccl/unique_id/{}.{}", settings.generation, settings.number);
  if (settings.place.rank == 0) return leave_id(rendezvous, key, settings.timeout);
  const auto value = rendezvous.get(key, settings.timeout);
  if (!value) return tl::unexpected(value.error().within("rank 0 did not leave NCCL's unique id"));
  if (value->empty() || value->front() != kIsId) {
    return make_error("rank 0 has no unique id of NCCL: {}", value->substr(value->empty() ? 0 : 1));
  }
  return value->substr(1);
}

}  // namespace

Result<void> add_gpu_facts(int device, hvdrun::v1::Registration& facts) {
  const auto found = device_facts(device);
  if (!found) return tl::unexpected(found.error());
  facts.set_nccl_version(found->nccl_version);
  facts.set_cuda_version(found->cuda_version);
  facts.set_driver_version(found->driver_version);
  facts.set_gpu_name(found->gpu_name);
  facts.set_gpu_uuid(found->gpu_uuid);
  facts.set_gpu_bus_id(found->gpu_bus_id);
  return {};
}

Result<std::unique_ptr<Communicator>> connect_gpus(
    TcpRendezvous& rendezvous, const GpuConnect& settings,
    std::function<void(const CommunicatorFailure&)> on_failure) {
  const SteadyTime deadline = steady_clock::now() + settings.timeout;
  auto id = shared_id(rendezvous, settings);
  if (!id) return tl::unexpected(id.error());
  NcclSettings nccl;
  nccl.rank = settings.place.rank;
  nccl.size = settings.place.size;
  nccl.device = settings.device;
  nccl.unique_id = std::move(*id);
  nccl.host = settings.place.host;
  nccl.init_timeout = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  return nccl_connect(nccl, std::move(on_failure));
}

#else

Result<void> add_gpu_facts(int /*device*/, hvdrun::v1::Registration& /*facts*/) {
  return make_error(ExitCode::kUsage,
                    "this build of hvdrun's library has no CUDA: build it with HVDRUN_TRAINING=ON, "
                    "or use the CPU (device -1)");
}

Result<std::unique_ptr<Communicator>> connect_gpus(
    TcpRendezvous& /*rendezvous*/, const GpuConnect& /*settings*/,
    std::function<void(const CommunicatorFailure&)> /*on_failure*/) {
  return make_error(ExitCode::kUsage, "this build of hvdrun's library has no CUDA");
}

#endif

}  // namespace hvd
