#include "agent/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/executable.h"
#include "agent/shim/proc.h"
#include "base/blanks.h"
#include "base/lines.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr std::uint64_t kNoise = 256;  // MiB: contexts of other programs come and go
constexpr double kMibPerGib = 1024.0;
constexpr std::size_t kMaxOutput = 1 << 16;

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
  for (const auto& row : rows_of<2>(text)) {
    const auto pid = parse_number<pid_t>(row[1]);
    if (pid) processes.push_back({std::string(row[0]), *pid, 0});
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
    sentences.push_back(fmt::format("GPU {} still holds {:.1f} GiB ({})", now.index,
                                    static_cast<double>(now.used_mib - then->used_mib) / kMibPerGib,
                                    holders(now.uuid, processes)));
  }
  return sentences;
}

void GpuMemory::look_before(const EnvList& env) {
  const auto found = find_executable("nvidia-smi", env, "/");
  if (found.errno_value != 0) return;
  path_ = found.path;
  env_ = env;
  ask("--query-gpu=index,uuid,memory.used",
      [this](const std::string& output) { before_ = parse_gpu_uses(output); });
}

void GpuMemory::look_after(Told told) {
  told_ = std::move(told);
  ask("--query-gpu=index,uuid,memory.used",
      [this](const std::string& output) { compare(parse_gpu_uses(output)); });
}

void GpuMemory::compare(const std::vector<GpuUse>& after) {
  if (gpu_remains(before_, after, {}).empty()) return told_({});
  ask("--query-compute-apps=gpu_uuid,pid", [this, after](const std::string& output) {
    std::vector<GpuProcess> processes = parse_gpu_processes(output);
    for (GpuProcess& process : processes) process.uid = user_of(process.pid);
    told_(gpu_remains(before_, after, processes));
  });
}

// `took` is called once, with nothing if the program fails or its time is over.
void GpuMemory::ask(const std::string& query, Took took) {
  output_.clear();
  took_ = std::move(took);
  limit_.start(kPatience, [this] {
    output_.clear();
    end_question();
  });
  auto program = OutsideProgram::start(
      loop_, {path_, {"nvidia-smi", query, "--format=csv,noheader,nounits"}, env_, "/"},
      {[this](std::string_view bytes) {
         output_.append(bytes.substr(0, kMaxOutput - std::min(output_.size(), kMaxOutput)));
       },
       [this](const std::string& how) {
         if (how != kEndedWell) output_.clear();
         end_question();
       }});
  if (program) program_ = std::move(*program);
  // One that cannot be started is told of by the limit, like one that says nothing.
}

void GpuMemory::end_question() {
  limit_.cancel();
  const Took took = std::exchange(took_, {});
  const std::string output = std::exchange(output_, {});
  program_.reset();
  if (took) took(output);
}

}  // namespace hvd
