// The use of the job's GPUs over its time: the agents' summaries go in, lowest and mean come out,
// now and over the run. Pure.
//
// Lifecycle: as long as the job. Thread: the owner's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hvdrun/v1/vitals.pb.h"
#include "proto/v1.h"

namespace hvd {

struct GpuHistory {
  std::string host;  // label of its node
  std::uint32_t index = 0;
  std::uint64_t num_samples = 0;
  std::optional<std::uint32_t> utilization_now;  // percent
  std::optional<std::uint32_t> utilization_lowest;
  std::optional<double> utilization_mean;
  std::optional<std::uint64_t> memory_now;  // MiB
  std::optional<std::uint64_t> memory_lowest;
  std::optional<double> memory_mean;
  std::uint64_t memory_total = 0;  // 0: not known
};

class GpuStats {
 public:
  void take(std::uint32_t node, const std::string& host, const v1::GpuSummary& summary);

  // By node and GPU.
  [[nodiscard]] std::vector<GpuHistory> all() const;
  [[nodiscard]] bool is_empty() const { return gpus_.empty(); }

  // "8 GPUs: utilisation lowest 3 % (node2 GPU 5), mean 91 %; memory lowest 20.1 GiB (node1 GPU 0),
  // mean 60 GiB", of the last samples or over the run. Empty without any.
  [[nodiscard]] std::string text_now() const;
  [[nodiscard]] std::string text_over_run() const;

 private:
  struct Row {
    GpuHistory use;
    std::uint64_t num_utilizations = 0;
    std::uint64_t num_memories = 0;
    double utilization_sum = 0;
    double memory_sum = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Row> gpus_;  // node, index
};

}  // namespace hvd
