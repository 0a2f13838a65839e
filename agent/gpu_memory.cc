#include "agent/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/shim/proc.h"
#include "base/blanks.h"
#include "base/lines.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::uint64_t kNoise = 256;  // MiB: contexts of other programs come and go

// The columns of each line that has so many.
template <std::size_t N>
std::vector<std::array<std::string_view, N>> rows_of(std::string_view text) {
  std::vector<std::array<std::string_view, N>> rows;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) != N - 1) continue;
    std::array<std::string_view, N> row;
    for (std::string_view& column : row) {
      column = strip_blanks(line.substr(0, line.find(',')));
      line.remove_prefix(std::min(line.find(',') + 1, line.size()));
    }
    rows.push_back(row);
  }
  return rows;
}

std::string holders(const std::string& uuid, const std::vector<GpuProcess>& processes) {
  std::string text;
  for (const GpuProcess& process : processes) {
    if (process.uuid != uuid) continue;
    text +=
        fmt::format("{}process {} of uid {}", text.empty() ? "" : ", ", process.pid, process.uid);
  }
  return text.empty() ? "no process is seen" : text + ", not of this job";
}

}  // namespace

std::string gib_text(std::uint64_t mib) {
  constexpr double kMibPerGib = 1024.0;
  return fmt::format("{:.1f} GiB", static_cast<double>(mib) / kMibPerGib);
}

std::vector<GpuUse> parse_gpu_uses(std::string_view text) {
  std::vector<GpuUse> uses;
  for (const auto& row : rows_of<3>(text)) {
    const auto index = parse_number<std::uint32_t>(row[0]);
    const auto used = parse_number<std::uint64_t>(row[2]);
    if (index && used) uses.push_back({*index, std::string(row[1]), *used});
  }
  return uses;
}

std::vector<GpuProcess> parse_gpu_processes(std::string_view text) {
  std::vector<GpuProcess> processes;
  for (const auto& row : rows_of<3>(text)) {
    const auto pid = parse_number<pid_t>(row[1]);
    if (!pid) continue;
    const auto used = parse_number<std::uint64_t>(row[2]);
    processes.push_back({std::string(row[0]), *pid, 0, used.value_or(0)});
  }
  return processes;
}

std::vector<std::string> gpu_remains(const std::vector<GpuUse>& before,
                                     const std::vector<GpuUse>& after,
                                     const std::vector<GpuProcess>& processes) {
  std::vector<std::string> sentences;
  for (const GpuUse& now : after) {
    const auto then = std::find_if(before.begin(), before.end(),
                                   [&](const GpuUse& gpu) { return gpu.uuid == now.uuid; });
    if (then == before.end() || now.used_mib <= then->used_mib + kNoise) continue;
    sentences.push_back(fmt::format("GPU {} still holds {} ({})", now.index,
                                    gib_text(now.used_mib - then->used_mib),
                                    holders(now.uuid, processes)));
  }
  return sentences;
}

void GpuMemory::look_before(const EnvList& env) {
  if (!question_.find_program(env)) return;
  question_.ask("--query-gpu=index,uuid,memory.used",
                [this](const std::string& output) { before_ = parse_gpu_uses(output); });
}

void GpuMemory::look_after(Told told) {
  told_ = std::move(told);
  question_.ask("--query-gpu=index,uuid,memory.used",
                [this](const std::string& output) { compare(parse_gpu_uses(output)); });
}

void GpuMemory::compare(const std::vector<GpuUse>& after) {
  if (gpu_remains(before_, after, {}).empty()) return told_({});
  question_.ask(kGpuProcessQuery, [this, after](const std::string& output) {
    std::vector<GpuProcess> processes = parse_gpu_processes(output);
    for (GpuProcess& process : processes) process.uid = user_of(process.pid);
    told_(gpu_remains(before_, after, processes));
  });
}

}  // namespace hvd
