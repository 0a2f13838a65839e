#include "launcher/gpu_stats.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"

namespace hvd {
namespace {

constexpr double kMibPerGib = 1024;

// Of one number of all GPUs that have it.
struct Spread {
  const GpuHistory* lowest_at = nullptr;
  double lowest = 0;
  double sum = 0;
  std::size_t count = 0;

  void add(const GpuHistory& gpu, double lowest_of_it, double mean_of_it) {
    if (count++ == 0 || lowest_of_it < lowest) {
      lowest = lowest_of_it;
      lowest_at = &gpu;
    }
    sum += mean_of_it;
  }
  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
};

std::string memory_text(double mib) {
  return mib < kMibPerGib ? fmt::format("{:.0f} MiB", mib)
                          : fmt::format("{:.1f} GiB", mib / kMibPerGib);
}

std::string place_text(const GpuHistory& gpu) {
  return fmt::format("{} GPU {}", gpu.host, gpu.index);
}

std::string spread_text(std::size_t num_gpus, const Spread& utilization, const Spread& memory) {
  std::string text = counted(num_gpus, "GPU") + ":";
  if (utilization.count > 0) {
    text += fmt::format(" utilisation lowest {:.0f} % ({}), mean {:.0f} %", utilization.lowest,
                        place_text(*utilization.lowest_at), utilization.mean());
  }
  if (memory.count > 0) {
    text += fmt::format("{} memory lowest {} ({}), mean {}", utilization.count > 0 ? ";" : "",
                        memory_text(memory.lowest), place_text(*memory.lowest_at),
                        memory_text(memory.mean()));
  }
  if (utilization.count == 0 && memory.count == 0) text += " nvidia-smi knows no numbers of them";
  return text;
}

}  // namespace

void GpuStats::take(std::uint32_t node, const std::string& host, const v1::GpuSummary& summary) {
  for (const v1::GpuSample& sample : summary.gpus()) {
    Row& row = gpus_[{node, sample.index()}];
    GpuHistory& use = row.use;
    use.host = host;
    use.index = sample.index();
    ++use.num_samples;
    use.utilization_now.reset();
    use.memory_now.reset();
    if (sample.has_utilization()) {
      use.utilization_now = sample.utilization();
      use.utilization_lowest =
          std::min(use.utilization_lowest.value_or(sample.utilization()), sample.utilization());
      row.utilization_sum += sample.utilization();
      use.utilization_mean = row.utilization_sum / static_cast<double>(++row.num_utilizations);
    }
    if (sample.has_memory()) {
      use.memory_now = sample.used_mib();
      use.memory_lowest =
          std::min(use.memory_lowest.value_or(sample.used_mib()), sample.used_mib());
      row.memory_sum += static_cast<double>(sample.used_mib());
      use.memory_mean = row.memory_sum / static_cast<double>(++row.num_memories);
      use.memory_total = sample.total_mib();
    }
  }
}

std::vector<GpuHistory> GpuStats::all() const {
  std::vector<GpuHistory> result;
  for (const auto& [place, row] : gpus_) result.push_back(row.use);
  return result;
}

std::string GpuStats::text_now() const {
  if (gpus_.empty()) return "";
  Spread utilization;
  Spread memory;
  for (const auto& [place, row] : gpus_) {
    const GpuHistory& use = row.use;
    if (use.utilization_now) {
      utilization.add(use, *use.utilization_now, *use.utilization_now);
    }
    if (use.memory_now) {
      const auto mib = static_cast<double>(*use.memory_now);
      memory.add(use, mib, mib);
    }
  }
  return spread_text(gpus_.size(), utilization, memory);
}

std::string GpuStats::text_over_run() const {
  if (gpus_.empty()) return "";
  Spread utilization;
  Spread memory;
  for (const auto& [place, row] : gpus_) {
    const GpuHistory& use = row.use;
    if (use.utilization_mean) {
      utilization.add(use, *use.utilization_lowest, *use.utilization_mean);
    }
    if (use.memory_mean) {
      memory.add(use, static_cast<double>(*use.memory_lowest), *use.memory_mean);
    }
  }
  return spread_text(gpus_.size(), utilization, memory);
}

}  // namespace hvd
