#include "training/formats/checkpoint_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>

#include "base/host_name.h"
#include "base/plural.h"
#include "training/formats/atomic_file.h"
#include "training/formats/crc32c.h"
#include "training/formats/disk_write.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

Result<std::vector<std::string>> file_names(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error == std::errc::no_such_file_or_directory) return names;
  if (error) return make_error("cannot list the folder {}: {}", folder, error.message());
  return names;
}

Result<std::vector<std::uint64_t>> steps_in(const std::string& folder) {
  const auto names = file_names(folder);
  if (!names) return tl::unexpected(names.error());
  std::vector<std::uint64_t> steps;
  for (const std::string& name : *names) {
    if (const auto step = checkpoint_step(name)) steps.push_back(*step);
  }
  return steps;
}

// "process 12 on node3": who holds the lock, as it wrote itself.
std::string lock_holder(int fd) {
  std::array<char, 200> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "another process";
}

void sign_lock(int fd) {
  const std::string text = fmt::format("process {} on {}", ::getpid(), host_name());
  // Only for the sentence of somebody who is refused: a full disk does not matter.
  if (::ftruncate(fd, 0) == 0) (void)write_all(fd, text);
}

// The lock; an invalid descriptor where the file system has none.
Result<UniqueFd> lock_folder(const std::string& folder) {
  const std::string path = (fs::path(folder) / ".lock").string();
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd.is_valid()) return tl::unexpected(write_error(path, errno, 0));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    sign_lock(fd.get());
    return fd;
  }
  if (errno != EWOULDBLOCK) return UniqueFd();
  return make_error(
      "{} is in use: {} writes its checkpoints there; stop it or choose another folder", folder,
      lock_holder(fd.get()));
}

// Whether it is the temporary file of a checkpoint: ".step-00000012.safetensors.partial-345".
bool is_left_over(std::string_view name) {
  const std::size_t end = name.find(kSuffix);
  if (end == std::string_view::npos || !name.starts_with(".")) return false;
  const std::string_view checkpoint = name.substr(1, end + kSuffix.size() - 1);
  return checkpoint_step(checkpoint) && AtomicFile::is_temporary_name(name, checkpoint);
}

Result<void> sweep(const std::string& folder) {
  const auto names = file_names(folder);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!is_left_over(name)) continue;
    const std::string path = (fs::path(folder) / name).string();
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return make_error("cannot remove {}, left by a killed trainer: {}", path,
                        std::strerror(errno));
    }
  }
  return {};
}

}  // namespace

namespace {

constexpr const char* kSumKey = "crc32c";

// Over all metadata but itself, and over the name and the bytes of each tensor, by name.
std::string checkpoint_sum(const TensorMetadata& metadata,
                           const std::map<std::string, std::string_view>& tensors) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    if (key != kSumKey) text += fmt::format("{}={}\n", key, value);
  }
  for (const auto& [name, bytes] : tensors) text += fmt::format("{}={:08x}\n", name, crc32c(bytes));
  return fmt::format("{:08x}", crc32c(text));
}

}  // namespace

std::string checkpoint_name(std::uint64_t step) {
  return fmt::format("{}{:08}{}", kPrefix, step, kSuffix);
}

std::optional<std::uint64_t> checkpoint_step(std::string_view file_name) {
  if (!file_name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t step = 0;
  const char* const digits = file_name.data() + kPrefix.size();
  const auto parsed = std::from_chars(digits, file_name.data() + file_name.size(), step);
  if (parsed.ec != std::errc() || file_name != checkpoint_name(step)) return std::nullopt;
  return step;
}

std::string checkpoint_path(const std::string& folder, std::uint64_t step) {
  return (fs::path(folder) / checkpoint_name(step)).string();
}

std::vector<std::uint64_t> steps_to_delete(std::vector<std::uint64_t> steps, std::uint64_t saved,
                                           std::size_t keep_last) {
  std::erase(steps, saved);
  std::ranges::sort(steps);
  const std::size_t num_kept = std::min(keep_last - 1, steps.size());
  steps.resize(steps.size() - num_kept);
  return steps;
}

Result<CheckpointStore> CheckpointStore::open(const std::string& folder, std::size_t keep_last) {
  if (keep_last < 1) return make_error("at least one checkpoint must be kept");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return make_error("cannot make the folder {}: {}", folder, error.message());
  auto lock = lock_folder(folder);
  if (!lock) return tl::unexpected(lock.error());
  // Without a lock, a temporary file may be a living writer's.
  if (lock->is_valid()) {
    if (auto swept = sweep(folder); !swept) return tl::unexpected(swept.error());
  }
  return CheckpointStore(folder, keep_last, std::move(*lock));
}

Result<SavedCheckpoint> CheckpointStore::save(std::uint64_t step,
                                              const std::vector<TensorBytes>& tensors,
                                              const TensorMetadata& metadata) {
  SavedCheckpoint saved;
  saved.path = checkpoint_path(folder_, step);
  std::map<std::string, std::string_view> by_name;
  for (const TensorBytes& tensor : tensors) by_name[tensor.spec.name] = tensor.bytes;
  TensorMetadata summed = metadata;
  summed[kSumKey] = checkpoint_sum(metadata, by_name);
  const auto num_bytes = write_safetensors(saved.path, tensors, summed);
  if (!num_bytes) return tl::unexpected(num_bytes.error());
  saved.num_bytes = *num_bytes;
  const auto steps = steps_in(folder_);
  if (!steps) {
    saved.notes.push_back(steps.error().message);
    return saved;
  }
  for (const std::uint64_t old : steps_to_delete(*steps, step, keep_last_)) {
    const std::string path = checkpoint_path(folder_, old);
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    saved.notes.push_back(
        fmt::format("cannot delete the old checkpoint {}: {}", path, std::strerror(errno)));
  }
  return saved;
}

Result<void> check_checkpoint(const SafetensorsFile& file) {
  std::map<std::string, std::string_view> tensors;
  for (const auto& [name, place] : file.tensors()) {
    auto bytes = file.bytes(name);
    if (!bytes) return tl::unexpected(bytes.error());
    tensors[name] = *bytes;
  }
  const auto sum = file.metadata().find(kSumKey);
  if (sum != file.metadata().end() && sum->second == checkpoint_sum(file.metadata(), tensors)) {
    return {};
  }
  return make_error("{}: its contents are not what was saved (checksum)", file.path());
}

Result<NewestCheckpoint> newest_checkpoint(const std::string& folder) {
  auto steps = steps_in(folder);
  if (!steps) return tl::unexpected(steps.error());
  std::ranges::sort(*steps, std::greater());
  NewestCheckpoint newest;
  for (const std::uint64_t step : *steps) {
    auto file = SafetensorsFile::open(checkpoint_path(folder, step));
    Result<void> is_whole;
    if (!file) is_whole = tl::unexpected(file.error());
    if (file) is_whole = check_checkpoint(*file);
    if (is_whole) {
      newest.checkpoint = Checkpoint{step, std::move(*file)};
      return newest;
    }
    newest.notes.push_back(
        fmt::format("passing over a damaged checkpoint: {}", is_whole.error().message));
  }
  if (steps->empty()) return newest;
  return make_error(
      "none of the {} in {} can be read (the newest: {}); move them away to begin anew",
      counted(steps->size(), "checkpoint"), folder, newest.notes.front());
}

}  // namespace hvd
