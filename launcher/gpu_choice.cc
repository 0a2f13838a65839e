#include "launcher/gpu_choice.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/blanks.h"
#include "base/parse_number.h"
#include "base/plural.h"
#include "launcher/gpu_list.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

bool is_device(std::string_view token) {
  return is_gpu_id(token) || parse_number<std::uint32_t>(token).has_value();
}

Result<std::vector<std::string>> devices_of(const HostSpec& host, const NodeGpus& gpus) {
  if (!host.gpus.empty()) return host.gpus;
  if (gpus.inherited) return visible_devices(*gpus.inherited);
  std::vector<std::string> all;
  for (std::uint32_t gpu = 0; gpu < gpus.num_present; ++gpu) all.push_back(std::to_string(gpu));
  return all;
}

// "GPUs 0,2 of the host list", "GPUs of CUDA_VISIBLE_DEVICES=0,2".
std::string source_of(const HostSpec& host, const NodeGpus& gpus) {
  if (!host.gpus.empty()) return fmt::format("the host list selects {}", format_gpus(host.gpus));
  if (gpus.inherited) return fmt::format("{}={}", kVisible, show(*gpus.inherited));
  return fmt::format("it has {}", counted(gpus.num_present, "GPU"));
}

}  // namespace

Result<std::vector<std::string>> visible_devices(std::string_view value) {
  std::vector<std::string> devices;
  for (std::size_t at = 0; at <= value.size();) {
    const auto comma = std::min(value.find(',', at), value.size());
    const auto token = strip_blanks(value.substr(at, comma - at));
    if (!is_device(token)) break;
    if (std::find(devices.begin(), devices.end(), token) != devices.end()) {
      return make_error(ExitCode::kUsage, "{}={} lists {} twice; list each GPU once", kVisible,
                        show(value), token);
    }
    devices.emplace_back(token);
    at = comma + 1;
  }
  return devices;
}

Result<std::vector<std::string>> one_gpu_each(const HostSpec& host, const NodeGpus& gpus,
                                              std::size_t num_ranks) {
  auto devices = devices_of(host, gpus);
  if (!devices || devices->size() >= num_ranks) return devices;
  return make_error(ExitCode::kUsage,
                    "{}: --one-gpu-per-rank needs a GPU for each of its {}, but {}; lower its "
                    "slots or leave the option out",
                    host.label(), counted(num_ranks, "rank"), source_of(host, gpus));
}

Result<void> check_selection(const HostSpec& host, const NodeGpus& gpus) {
  if (const auto devices = devices_of(host, gpus); !devices) {
    return tl::unexpected(devices.error().within(host.label()));
  }
  if (gpus.num_present == 0) return {};
  for (const std::string& gpu : host.gpus) {
    const auto number = parse_number<std::uint32_t>(gpu);
    if (!number || *number < gpus.num_present) continue;
    return make_error(ExitCode::kUsage, "{}: the host list selects GPU {}, but {}; select others",
                      host.label(), gpu,
                      fmt::format("it has {}", counted(gpus.num_present, "GPU")));
  }
  return {};
}

EnvList selected_gpus_env(const HostSpec& host) {
  if (host.gpus.empty()) return {};
  return {{kVisible, format_gpus(host.gpus)}};
}

EnvList one_gpu_env(const std::string& gpu) { return {{kVisible, gpu}, {"LOCAL_RANK", "0"}}; }

std::string gpu_claim(const HostSpec& host, const std::optional<std::string>& inherited,
                      std::size_t num_ranks) {
  std::vector<std::string> chosen = host.gpus;
  if (chosen.empty() && inherited) {
    auto devices = visible_devices(*inherited);
    if (!devices) return "all";
    chosen = std::move(*devices);
    if (chosen.empty()) return "none";
  }
  if (chosen.empty()) {
    if (num_ranks == 0) return "all";
    for (std::size_t i = 0; i < num_ranks; ++i) chosen.push_back(std::to_string(i));
  }
  const bool are_numbers = std::all_of(chosen.begin(), chosen.end(), [](const std::string& one) {
    return parse_number<std::uint32_t>(one).has_value();
  });
  // An id of a GPU or of a part of one tells nothing of which others it excludes.
  return are_numbers ? fmt::format("{}", fmt::join(chosen, ",")) : "all";
}

}  // namespace hvd
