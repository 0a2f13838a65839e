// What nvidia-smi knows of the node's GPUs, and the errors (Xid) that their driver has told the
// kernel's log since this agent began: for metrics. Thread: the loop's.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "agent/gpu_question.h"
#include "agent/kernel_log.h"
#include "base/loop.h"
#include "proto/worker_env.h"

namespace hvd {

// The query, and what it prints as a JSON array: numbers that nvidia-smi does not know are left
// out, a line that is none of a GPU too. Pure.
inline constexpr std::string_view kGpuTableQuery =
    "--query-gpu=index,name,uuid,utilization.gpu,memory.used,memory.total,temperature.gpu,"
    "power.draw,ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total";
[[nodiscard]] std::string gpu_table_json(std::string_view output);

class GpuTable {
 public:
  explicit GpuTable(Loop& loop)
      : loop_(loop), question_(loop), answered_(loop), log_(kernel_log_path()) {}

  // {"gpus":[..],"xid":[{"pci":..,"xid":..,"count":..}],"problem":""}. Those who ask at once get
  // one answer.
  [[nodiscard]] Task<std::string> ask(const EnvList& env);

 private:
  Loop& loop_;
  GpuQuestion question_;
  Event answered_;
  bool is_asking_ = false;
  std::string output_;
  KernelLog log_;
  std::map<std::pair<std::string, int>, unsigned> xids_;  // device and number -> how often
};

}  // namespace hvd
