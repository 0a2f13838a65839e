#include "training/formats/safetensors.h"

#include <algorithm>
#include <cstring>

#include "training/formats/atomic_file.h"

namespace hvd {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

Result<SafetensorsPlan> checked_plan(const std::vector<TensorBytes>& tensors,
                                     const TensorMetadata& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorBytes& tensor : tensors) {
    const auto needed = tensor_num_bytes(tensor.spec.dtype, tensor.spec.shape);
    if (needed && *needed != tensor.bytes.size()) {
      return make_error("tensor {} needs {} bytes and was given {}", tensor.spec.name, *needed,
                        tensor.bytes.size());
    }
    specs.push_back(tensor.spec);
  }
  return plan_safetensors(specs, metadata);
}

Result<std::string_view> header_text(std::string_view file) {
  if (file.size() < kLengthBytes) {
    return make_error("it has {} bytes, too few for a header: the file was cut", file.size());
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxSafetensorsHeader) {
    return make_error("it claims a header of {} bytes, more than the {} allowed: not safetensors?",
                      length, kMaxSafetensorsHeader);
  }
  if (length > file.size() - kLengthBytes) {
    return make_error("its header of {} bytes is longer than the file ({} bytes): the file was cut",
                      length, file.size());
  }
  return file.substr(kLengthBytes, length);
}

}  // namespace

Result<std::uint64_t> write_safetensors(const std::string& path,
                                        const std::vector<TensorBytes>& tensors,
                                        const TensorMetadata& metadata) {
  const auto plan = checked_plan(tensors, metadata);
  if (!plan) return tl::unexpected(plan.error().within("cannot write " + path));
  const std::uint64_t num_bytes = plan->header.size() + plan->num_data_bytes;
  auto file = AtomicFile::create(path, num_bytes);
  if (!file) return tl::unexpected(file.error());
  auto written = file->write(plan->header);
  for (const std::size_t i : plan->order) {
    if (written) written = file->write(tensors[i].bytes);
  }
  if (written) written = file->commit();
  if (!written) return tl::unexpected(written.error());
  return num_bytes;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto text = header_text(file->bytes());
  if (!text) return tl::unexpected(text.error().within(path));
  const std::uint64_t data_start = kLengthBytes + text->size();
  auto header = parse_safetensors_header(*text, file->bytes().size() - data_start);
  if (!header) return tl::unexpected(header.error().within(path));
  return SafetensorsFile(std::move(*file), std::move(*header), data_start);
}

Result<std::string_view> SafetensorsFile::bytes(const std::string& name) const {
  const auto found = tensors().find(name);
  if (found == tensors().end()) return make_error("{} has no tensor \"{}\"", path(), name);
  const auto& place = found->second;
  return file_.bytes().substr(data_start_ + place.begin, place.end - place.begin);
}

}  // namespace hvd
