// What the kernel's log (/dev/kmsg) says from the job's start on: processes killed for lack of
// memory, and errors that NVIDIA's driver reports (Xid). Read without waiting, a bounded amount at
// a time; each fact is told once, and no more than kMaxFacts in all. Thread: the owner's.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

// One record as the kernel gives it, "6,1234,5678901,-;text". nullopt: no record of the kernel
// itself, or nothing that concerns a job. Control bytes stand in the text as the kernel escapes
// them. Pure.
[[nodiscard]] std::optional<hvdrun::v1::KernelFact> parse_kernel_record(std::string_view record);

class KernelLog {
 public:
  static constexpr std::size_t kMaxFacts = 64;

  // Begins behind what is there. `path`: /dev/kmsg, or a file that grows like it.
  explicit KernelLog(const std::string& path);

  // Why it proves nothing about a process: "Operation not permitted"; empty if it can be read and
  // names processes by our numbers. What it says otherwise is told all the same.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // What has come since the last call.
  [[nodiscard]] hvdrun::v1::KernelFacts read_new();

 private:
  void take(std::string_view text, hvdrun::v1::KernelFacts& facts);

  UniqueFd fd_;
  std::string problem_;
  std::string partial_;          // a record whose end has not come
  bool names_our_pids_ = true;   // we see processes by the numbers that the kernel's log uses
  std::set<std::string> known_;  // texts told; of an Xid its device and number
};

// $HVDRUN_KERNEL_LOG, else /dev/kmsg.
[[nodiscard]] std::string kernel_log_path();

}  // namespace hvd
