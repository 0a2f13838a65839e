#include "runtime/gradient_sync_plan.h"

#include <set>

#include "runtime/gradient_sync_bucket.h"

namespace hvd {
namespace {

// Why it has no gradient that could be reduced; empty: it has.
std::string problem_of(const at::Tensor& tensor, const Communicator& data) {
  if (!tensor.requires_grad() || !tensor.is_leaf()) return "is not a leaf that requires a gradient";
  if (!tensor.is_non_overlapping_and_dense()) return "has gaps between its values";
  if (!data_type_of(tensor.scalar_type())) return "has a type whose gradients cannot be reduced";
  if (data.device_kind() == DeviceKind::kCuda && !tensor.is_cuda()) {
    return "is not on the GPU on which the gradients are reduced";
  }
  return "";
}

void add_problem(Plan& plan, const std::string& name, std::string_view what) {
  plan.push_back({PlanLine::Kind::kProblem, "", fmt::format("the tensor {} {}", name, what)});
}

// Buckets of a rank can lie on one GPU, beside the CPU.
void check_devices(const std::vector<NamedParameter>& parameters, Plan& plan) {
  std::optional<at::Device> device;
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.defined() || tensor.is_cpu()) continue;
    if (device && *device != tensor.device()) {
      add_problem(plan, name,
                  fmt::format("is on {}, others are on {}: a rank uses one GPU",
                              tensor.device().str(), device->str()));
      return;
    }
    device = tensor.device();
  }
}

void add_settings(const SyncOptions& options, DeviceKind kind, Plan& plan) {
  const auto add = [&](std::string name, std::string text) {
    plan.push_back({PlanLine::Kind::kSetting, std::move(name), std::move(text)});
  };
  add("first_bucket_bytes", std::to_string(options.first_bucket_bytes));
  add("bucket_bytes (HOROVOD_FUSION_THRESHOLD)", std::to_string(options.bucket_bytes));
  add("compression", std::string(name_of(options.compression)));
  add("num_riders", std::to_string(options.num_riders));
  add("communicator of the gradients", kind == DeviceKind::kCuda ? "of a GPU" : "of the CPU");
}

}  // namespace

Plan plan_of_tensors(const std::vector<NamedParameter>& tensors) {
  Plan plan;
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) add_problem(plan, name, "is given twice");
    if (!tensor.defined()) {
      add_problem(plan, name, "is undefined");
    } else {
      plan.push_back({PlanLine::Kind::kTensor, name, describe(tensor)});
    }
  }
  return plan;
}

Plan plan_of_parameters(const std::vector<NamedParameter>& parameters, const Communicator& data,
                        const SyncOptions& options) {
  Plan plan = plan_of_tensors(parameters);
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.defined()) continue;
    if (const std::string problem = problem_of(tensor, data); !problem.empty()) {
      add_problem(plan, name, problem);
    }
  }
  if (parameters.empty()) {
    plan.push_back({PlanLine::Kind::kProblem, "", "there is no parameter to synchronise"});
  }
  check_devices(parameters, plan);
  add_settings(options, data.device_kind(), plan);
  return plan;
}

}  // namespace hvd
