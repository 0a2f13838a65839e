#include "hvdrun/gradient_synchronizer.h"

#include "runtime/gradient_sync_core.h"
#include "runtime/gradient_sync_plan.h"
#include "runtime/worker_exit.h"

namespace hvd {

GradientSynchronizer::GradientSynchronizer(std::unique_ptr<Core> core) : core_(std::move(core)) {}
GradientSynchronizer::~GradientSynchronizer() = default;

Result<std::unique_ptr<GradientSynchronizer>> GradientSynchronizer::create(
    std::vector<NamedParameter> parameters, Communicator& data, Communicator& control,
    const SyncOptions& options) {
  try {
    const Call call{options.timeout, nullptr};
    auto checked = check_plan(plan_of_parameters(parameters, data, options), control, call);
    if (!checked) return tl::unexpected(checked.error().within("gradients of the ranks"));
    auto core = std::make_unique<Core>(std::move(parameters), data, control, options);
    return std::unique_ptr<GradientSynchronizer>(new GradientSynchronizer(std::move(core)));
  } catch (const std::exception& exception) {
    return worker_error(WorkerExit::kInternal, "gradient synchroniser: {}", exception.what());
  }
}

void GradientSynchronizer::set_accumulating(bool is_accumulating) {
  core_->set_accumulating(is_accumulating);
}
void GradientSynchronizer::set_riders(std::span<const double> values) { core_->set_riders(values); }
Result<void> GradientSynchronizer::finish() { return core_->finish(); }
const std::vector<at::Tensor>& GradientSynchronizer::gradients() const {
  return core_->gradients();
}
const std::vector<at::Tensor>& GradientSynchronizer::flat_gradients() const {
  return core_->flat_gradients();
}
at::Tensor GradientSynchronizer::riders() const { return core_->riders(); }
std::int64_t GradientSynchronizer::num_missing() const { return core_->num_missing(); }
void GradientSynchronizer::reset() { core_->reset(); }
std::vector<std::vector<std::string>> GradientSynchronizer::buckets() const {
  return core_->bucket_names();
}
std::uint64_t GradientSynchronizer::bytes_on_wire() const { return core_->bytes_on_wire(); }

}  // namespace hvd
