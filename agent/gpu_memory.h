// Whether the node's GPUs hold as much memory after the job as before it. One question to
// nvidia-smi at each end; a machine without it, or on which it is slow, is not asked again.
//
// Lifecycle: look_before() once, look_after() once at most. Thread: the loop's. Nobody waits longer
// than GpuQuestion::kPatience for either.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gpu_question.h"
#include "base/loop.h"
#include "proto/worker_env.h"

namespace hvd {

struct GpuUse {
  std::uint32_t index = 0;
  std::string uuid;
  std::uint64_t used_mib = 0;
};

struct GpuProcess {
  std::string uuid;
  pid_t pid = 0;
  uid_t uid = 0;               // filled in by whoever looks
  std::uint64_t used_mib = 0;  // of that GPU; 0: not known
};

// Pure: "0, GPU-5b1f.., 1234" a line, of --query-gpu=index,uuid,memory.used. Other lines are left
// out.
[[nodiscard]] std::vector<GpuUse> parse_gpu_uses(std::string_view text);
// Pure: "GPU-5b1f.., 4711, 1234" a line, of kGpuProcessQuery.
[[nodiscard]] std::vector<GpuProcess> parse_gpu_processes(std::string_view text);
inline constexpr const char* kGpuProcessQuery = "--query-compute-apps=gpu_uuid,pid,used_gpu_memory";
// Pure: "12.1 GiB".
[[nodiscard]] std::string gib_text(std::uint64_t mib);
// Pure: a sentence for each GPU that holds over 256 MiB more than before: "GPU 3 still holds 12.1
// GiB (process 4711 of uid 1000, not of this job)".
[[nodiscard]] std::vector<std::string> gpu_remains(const std::vector<GpuUse>& before,
                                                   const std::vector<GpuUse>& after,
                                                   const std::vector<GpuProcess>& processes);

class GpuMemory {
 public:
  using Told = std::function<void(const std::vector<std::string>&)>;

  explicit GpuMemory(Loop& loop) : question_(loop) {}

  // Without nvidia-smi nothing happens.
  void look_before(const EnvList& env);

  // Whether the first look has told anything, and soon enough.
  [[nodiscard]] bool can_compare() const { return !before_.empty(); }
  // Calls `told` once, later, with what the GPUs hold since look_before(). Only if can_compare().
  void look_after(Told told);

 private:
  void compare(const std::vector<GpuUse>& after);

  GpuQuestion question_;
  std::vector<GpuUse> before_;
  Told told_;
};

}  // namespace hvd
