#include "training/petrv2/trainer/train_state.h"

#include "base/parse_number.h"
#include "runtime/worker_exit.h"
#include "training/formats/crc32c.h"

namespace hvd::petrv2 {
namespace {

constexpr const char* kFormat = "hvdrun.petrv2.1";

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "F64";
    case at::kFloat:
      return "F32";
    case at::kInt:
      return "I32";
    default:
      TORCH_CHECK(false, "a state of type ", toString(type));
  }
}

std::string_view bytes_of(const at::Tensor& contiguous) {
  return {static_cast<const char*>(contiguous.const_data_ptr()),
          static_cast<std::size_t>(contiguous.nbytes())};
}

// In the CPU's memory, in row-major order.
at::Tensor to_host(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous(); }

std::vector<std::uint64_t> shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

Result<std::uint64_t> number_at(const TensorMetadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return worker_error(WorkerExit::kData, "it has no \"{}\"", key);
  if (const auto number = parse_number<std::uint64_t>(found->second)) return *number;
  return worker_error(WorkerExit::kData, "its \"{}\" is \"{}\", no number", key, found->second);
}

// The numbers of a position by their names.
template <typename Position>
auto fields(Position& position) {
  return std::array{std::pair{"step", &position.step},
                    std::pair{"epoch", &position.sampler.epoch},
                    std::pair{"epoch_samples_seen", &position.sampler.samples_seen},
                    std::pair{"samples_seen", &position.samples_seen},
                    std::pair{"num_skipped", &position.num_skipped},
                    std::pair{"num_skipped_in_a_row", &position.num_skipped_in_a_row},
                    std::pair{"seed", &position.seed}};
}

}  // namespace

TensorMetadata to_metadata(const TrainPosition& position, const std::string& config,
                           const std::string& data) {
  TensorMetadata metadata = {{"format", kFormat}, {"config", config}, {kDataKey, data}};
  for (const auto& [name, value] : fields(position)) metadata[name] = fmt::format("{}", *value);
  return metadata;
}

Result<TrainPosition> from_metadata(const TensorMetadata& metadata) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat) {
    return worker_error(WorkerExit::kData, "it is no checkpoint of petrv2 train ({})", kFormat);
  }
  TrainPosition position;
  for (const auto& [name, value] : fields(position)) {
    auto number = number_at(metadata, name);
    if (!number) return tl::unexpected(number.error());
    *value = *number;
  }
  return position;
}

TrainState::TrainState(const Petrv2& model, AdamW& optimiser, LossScale& loss_scale) {
  for (const Parameter& tensor : model.tensors().all()) {
    tensors_.push_back({"model." + tensor.name, tensor.tensor});
  }
  num_weights_ = tensors_.size();
  std::size_t i = 0;
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.is_trainable) continue;
    tensors_.push_back({"optimiser.first_moment." + parameter.name, optimiser.first_moments()[i]});
    tensors_.push_back(
        {"optimiser.second_moment." + parameter.name, optimiser.second_moments()[i]});
    ++i;
  }
  tensors_.push_back({"optimiser.num_steps", optimiser.num_steps()});
  tensors_.push_back({"loss_scale.value", loss_scale.value()});
  tensors_.push_back({"loss_scale.good_steps", loss_scale.good_steps()});
}

Result<SavedCheckpoint> TrainState::save(CheckpointStore& store, const TrainPosition& position,
                                         const std::string& config, const std::string& data) const {
  std::vector<at::Tensor> hosts;
  std::vector<TensorBytes> entries;
  for (const auto& [name, tensor] : tensors_) {
    hosts.push_back(to_host(tensor));
    entries.push_back(
        {{name, dtype_name(tensor.scalar_type()), shape_of(tensor)}, bytes_of(hosts.back())});
  }
  auto saved = store.save(position.step, entries, to_metadata(position, config, data));
  if (!saved) return with_exit(saved.error(), WorkerExit::kData);
  return saved;
}

Result<void> TrainState::load(const SafetensorsFile& file) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : tensors_) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end() || found->second.shape != shape_of(tensor) ||
        found->second.dtype != dtype_name(tensor.scalar_type())) {
      return worker_error(WorkerExit::kData,
                          "{}: it has no \"{}\" of shape [{}] and type {}; it is of another "
                          "configuration or precision",
                          file.path(), name, fmt::join(tensor.sizes(), ", "),
                          dtype_name(tensor.scalar_type()));
    }
    auto bytes = file.bytes(name);
    if (!bytes) return with_exit(bytes.error(), WorkerExit::kData);
    // from_blob takes no const; it is only read from.
    tensor.copy_(at::from_blob(const_cast<char*>(bytes->data()), tensor.sizes(),
                               at::TensorOptions(tensor.scalar_type())));
  }
  return {};
}

Result<void> TrainState::broadcast(Communicator& communicator, const Call& call) {
  if (communicator.size() == 1) return {};
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : tensors_) {
    const at::Tensor host = to_host(tensor);
    auto done =
        communicator.broadcast(host.mutable_data_ptr(), host.nbytes(), DataType::kUint8, 0, call);
    if (!done) return collective_error(communicator, done.error());
    if (communicator.rank() != 0) tensor.copy_(host);
  }
  return {};
}

std::uint32_t TrainState::weights_checksum() const {
  std::string sums;
  for (std::size_t i = 0; i < num_weights_; ++i) {
    const at::Tensor host = to_host(tensors_[i].tensor);
    sums += fmt::format("{:08x}", crc32c(bytes_of(host)));
  }
  return crc32c(sums);
}

}  // namespace hvd::petrv2
