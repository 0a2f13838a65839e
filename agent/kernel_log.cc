#include "agent/kernel_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kMaxReads = 1000;   // records of one call
constexpr std::size_t kMaxRecord = 8192;  // the kernel's own bound
constexpr std::size_t kMaxText = 400;
constexpr unsigned kFacilityShift = 3;  // below it the priority
constexpr const char* kDevice = "/dev/kmsg";
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFCU;

std::string_view digits_at(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

// "... Killed process 4711 (python3) total-vm:..., shmem-rss:0kB, UID:0 ...": the line up to the
// command, which is what tells.
std::optional<v1::KernelFact> parse_kill(std::string_view text) {
  constexpr std::string_view kKilled = "Killed process ";
  const std::size_t at = text.find(kKilled);
  if (at == std::string_view::npos) return std::nullopt;
  const auto pid = parse_number<std::int32_t>(digits_at(text.substr(at + kKilled.size())));
  if (!pid) return std::nullopt;
  v1::KernelFact fact;
  fact.set_kind(v1::KernelFact::KIND_OUT_OF_MEMORY);
  fact.set_pid(*pid);
  return fact;
}

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
std::optional<v1::KernelFact> parse_xid(std::string_view text) {
  constexpr std::string_view kXid = "NVRM: Xid (";
  if (!text.starts_with(kXid)) return std::nullopt;
  const std::size_t close = text.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const auto code = parse_number<std::int32_t>(digits_at(text.substr(close + 3)));
  if (!code) return std::nullopt;
  std::string_view device = text.substr(kXid.size(), close - kXid.size());
  if (device.starts_with("PCI:")) device.remove_prefix(4);
  v1::KernelFact fact;
  fact.set_kind(v1::KernelFact::KIND_XID);
  fact.set_code(*code);
  fact.set_device(std::string(device));
  constexpr std::string_view kPid = ", pid=";
  const std::size_t pid_at = text.find(kPid);
  if (pid_at != std::string_view::npos) {
    const auto pid = parse_number<std::int32_t>(digits_at(text.substr(pid_at + kPid.size())));
    fact.set_pid(pid.value_or(0));
  }
  return fact;
}

// In a container the kernel's log names processes by other numbers than we know them by.
bool is_in_initial_pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kInitialPidNamespace;
}

}  // namespace

std::optional<v1::KernelFact> parse_kernel_record(std::string_view record) {
  const std::size_t text_at = record.find(';');
  if (text_at == std::string_view::npos) return std::nullopt;
  const auto level = parse_number<unsigned>(digits_at(record));
  if (!level || *level >> kFacilityShift != 0) return std::nullopt;  // written by a program
  const std::string_view text = record.substr(text_at + 1);
  auto fact = parse_kill(text);
  if (!fact) fact = parse_xid(text);
  if (fact) fact->set_text(std::string(text.substr(0, kMaxText)));
  return fact;
}

KernelLog::KernelLog(const std::string& path)
    : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
      names_our_pids_(path != kDevice || is_in_initial_pid_namespace()) {
  if (!fd_.is_valid()) {
    problem_ = std::strerror(errno);
    return;
  }
  if (!names_our_pids_) problem_ = "it names processes by other numbers than this container";
  lseek(fd_.get(), 0, SEEK_END);
}

v1::KernelFacts KernelLog::read_new() {
  v1::KernelFacts facts;
  std::array<char, kMaxRecord> block;
  for (std::size_t i = 0; fd_.is_valid() && i < kMaxReads; ++i) {
    const ssize_t n = read(fd_.get(), block.data(), block.size());
    if (n < 0 && errno == EPIPE) continue;  // records were overwritten before we came
    if (n <= 0) break;
    take(std::string_view(block.data(), static_cast<std::size_t>(n)), facts);
  }
  return facts;
}

// Behind a record may stand lines with further keys, which begin with a blank.
void KernelLog::take(std::string_view text, v1::KernelFacts& facts) {
  partial_ += text;
  std::size_t begin = 0;
  for (std::size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto fact = parse_kernel_record(std::string_view(partial_).substr(begin, end - begin));
    if (!fact || known_.size() >= kMaxFacts) continue;
    const bool is_xid = fact->kind() == v1::KernelFact::KIND_XID;
    const std::string key =
        is_xid ? fmt::format("{} {}", fact->device(), fact->code()) : fact->text();
    if (!known_.insert(key).second) continue;
    if (!names_our_pids_) fact->set_pid(0);
    fact->set_time_ns(boottime_now().count());
    *facts.add_facts() = std::move(*fact);
  }
  partial_.erase(0, begin);
  if (partial_.size() > kMaxRecord) partial_.clear();
}

std::string kernel_log_path() {
  const char* path = std::getenv("HVDRUN_KERNEL_LOG");
  return path != nullptr && *path != '\0' ? path : kDevice;
}

}  // namespace hvd
