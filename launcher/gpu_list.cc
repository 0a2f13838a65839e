#include "launcher/gpu_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "base/blanks.h"
#include "base/parse_number.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::uint32_t kHighestGpu = 1023;

bool is_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_id_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '/';
}

Result<void> add_gpu(std::string gpu, std::vector<std::string>& gpus) {
  if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) {
    return make_error(ExitCode::kUsage, "GPU {} is listed twice; list each GPU once", gpu);
  }
  gpus.push_back(std::move(gpu));
  return {};
}

}  // namespace

bool is_gpu_number(std::string_view item) {
  const auto dash = item.find('-');
  if (dash == std::string_view::npos) return is_number(item);
  return is_number(item.substr(0, dash)) && is_number(item.substr(dash + 1));
}

bool is_gpu_id(std::string_view item) {
  return (item.starts_with("GPU-") || item.starts_with("MIG-")) &&
         std::all_of(item.begin(), item.end(), is_id_char);
}

Result<void> add_gpus(std::string_view item, std::vector<std::string>& gpus) {
  if (is_gpu_id(item)) return add_gpu(std::string(item), gpus);
  const auto dash = item.find('-');
  const auto low = parse_number<std::uint32_t>(item.substr(0, dash));
  const auto high =
      dash == std::string_view::npos ? low : parse_number<std::uint32_t>(item.substr(dash + 1));
  if (!low || !high || *high > kHighestGpu || *high < *low) {
    return make_error(ExitCode::kUsage,
                      "{} is no GPU; write numbers from 0 to {}, ranges of them as 0-3, or ids as "
                      "nvidia-smi -L prints them",
                      show(item), kHighestGpu);
  }
  for (std::uint32_t gpu = *low; gpu <= *high; ++gpu) {
    if (auto added = add_gpu(fmt::format_int(gpu).str(), gpus); !added) return added;
  }
  return {};
}

Result<std::vector<std::string>> parse_gpus(std::string_view text) {
  std::vector<std::string> gpus;
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    const auto added = add_gpus(strip_blanks(text.substr(at, comma - at)), gpus);
    if (!added) return tl::unexpected(added.error());
    at = comma + 1;
  }
  return gpus;
}

std::string format_gpus(const std::vector<std::string>& gpus) {
  return fmt::format("{}", fmt::join(gpus, ","));
}

}  // namespace hvd
