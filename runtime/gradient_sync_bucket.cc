#include "runtime/gradient_sync_bucket.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

at::ScalarType scalar_type_of(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return at::kDouble;
    case DataType::kFloat32:
      return at::kFloat;
    case DataType::kFloat16:
      return at::kHalf;
    case DataType::kBfloat16:
      return at::kBFloat16;
    case DataType::kInt32:
      return at::kInt;
    case DataType::kInt64:
      return at::kLong;
    case DataType::kUint8:
      return at::kByte;
  }
  return at::kFloat;
}

// Every view begins at 16 bytes, as vectorised kernels want it; what is between stays zero.
std::int64_t slot_of(std::int64_t num_elements, const at::TensorOptions& options) {
  const auto step = static_cast<std::int64_t>(16 / options.dtype().itemsize());
  return (num_elements + step - 1) / step * step;
}

void write_riders(const at::Tensor& to, std::span<const double> values) {
  const bool is_on_gpu = !to.is_cpu();
  at::Tensor from = at::empty(to.sizes(), to.options().device(at::kCPU).pinned_memory(is_on_gpu));
  if (to.scalar_type() == at::kDouble) {
    std::copy(values.begin(), values.end(), from.mutable_data_ptr<double>());
  } else {
    auto* const data = from.mutable_data_ptr<float>();
    for (std::size_t i = 0; i < values.size(); ++i) data[i] = static_cast<float>(values[i]);
  }
  // From pinned memory, so the host need not wait; its allocator keeps it until the copy is done.
  to.copy_(from, /*non_blocking=*/is_on_gpu);
}

// The strides of a dimension with one element mean nothing.
bool is_laid_out_like(const at::Tensor& gradient, const at::Tensor& view) {
  for (std::int64_t i = 0; i < view.dim(); ++i) {
    if (view.size(i) != 1 && gradient.stride(i) != view.stride(i)) return false;
  }
  return true;
}

// Tensors to copy in one call. Its one kernel needs equal strides of all pairs, also where they
// mean nothing: a single other pair would make it a kernel for each.
class CopyList {
 public:
  explicit CopyList(std::size_t max_pairs) {
    to_.reserve(max_pairs);
    from_.reserve(max_pairs);
  }
  void add(const at::Tensor& view, at::Tensor gradient) {
    if (gradient.strides() == view.strides()) {
      push(view, std::move(gradient));
    } else if (is_laid_out_like(gradient, view)) {
      push(view, gradient.as_strided(view.sizes(), view.strides()));
    } else {
      view.copy_(gradient);
    }
  }
  void run() const {
    if (!to_.empty()) at::_foreach_copy_(to_, from_);
  }

 private:
  void push(const at::Tensor& to, at::Tensor from) {
    to_.push_back(to);
    from_.push_back(std::move(from));
  }
  std::vector<at::Tensor> to_, from_;
};

}  // namespace

Result<DataType> data_type_of(at::ScalarType type) {
  for (const DataType known :
       {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16,
        DataType::kInt32, DataType::kInt64, DataType::kUint8}) {
    if (scalar_type_of(known) == type) return known;
  }
  return make_error("{} cannot be reduced", c10::toString(type));
}

std::string describe(const at::Tensor& tensor) {
  const auto type = data_type_of(tensor.scalar_type());
  return fmt::format("{} [{}] on {}",
                     type ? name_of(*type) : std::string_view(c10::toString(tensor.scalar_type())),
                     fmt::join(tensor.sizes(), ", "),
                     c10::DeviceTypeName(tensor.device().type(), /*lower_case=*/true));
}

SyncBucket make_bucket(std::vector<std::size_t> parameters, const std::vector<at::Tensor>& tensors,
                       const at::TensorOptions& options, const BucketSettings& settings) {
  SyncBucket bucket;
  bucket.parameters = std::move(parameters);
  const auto num_riders = static_cast<std::int64_t>(settings.num_riders);
  std::int64_t total = 0;
  for (const std::size_t i : bucket.parameters) total += slot_of(tensors[i].numel(), options);
  bucket.flat = at::zeros({total + num_riders}, options);
  if (num_riders > 0) bucket.riders = bucket.flat.narrow(0, total, num_riders);
  std::int64_t offset = 0;
  for (const std::size_t i : bucket.parameters) {
    bucket.views.push_back(
        bucket.flat.as_strided(tensors[i].sizes(), tensors[i].strides(), offset));
    offset += slot_of(tensors[i].numel(), options);
  }

  const DataType type = data_type_of(bucket.flat.scalar_type()).value();
  bucket.format = wire_format(type, settings.index == 0, settings.compression, settings.num_ranks);
  bucket.wire = bucket.flat;
  if (bucket.format.is_compressed) {
    bucket.wire = at::empty(bucket.flat.sizes(), options.dtype(scalar_type_of(bucket.format.type)));
  }
  if (settings.data_kind == DeviceKind::kCpu && !bucket.wire.is_cpu()) {
    bucket.staging =
        at::empty(bucket.wire.sizes(), bucket.wire.options().device(at::kCPU).pinned_memory(true));
  }
  bucket.facts = {settings.index, bucket.wire.nbytes(), bucket.format.is_compressed};
  return bucket;
}

std::int64_t fill_bucket(SyncBucket& bucket, const std::vector<at::Tensor>& tensors,
                         std::span<const double> riders) {
  // Past autograd's kernels, whose bookkeeping for each tensor of a list takes backward's thread
  // longer than the launch of the copy.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  CopyList copies(bucket.views.size());
  std::int64_t num_missing = 0;
  for (std::size_t i = 0; i < bucket.views.size(); ++i) {
    at::Tensor& slot = tensors[bucket.parameters[i]].mutable_grad();
    at::Tensor gradient = std::exchange(slot, bucket.views[i]);
    if (gradient.defined()) {
      copies.add(bucket.views[i], std::move(gradient));
    } else {
      bucket.views[i].zero_();
      ++num_missing;
    }
  }
  copies.run();
  if (bucket.riders.defined()) write_riders(bucket.riders, riders);
  return num_missing;
}

}  // namespace hvd
