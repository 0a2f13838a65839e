#include "bench_options.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parse_number.h"

namespace {

using hvd::DataType;
using hvd::ExitCode;
using hvd::make_error;

constexpr std::pair<std::string_view, DataType> kTypes[] = {
    {"float", DataType::kFloat32},     {"double", DataType::kFloat64}, {"half", DataType::kFloat16},
    {"bfloat16", DataType::kBfloat16}, {"int32", DataType::kInt32},    {"int64", DataType::kInt64},
    {"uint8", DataType::kUint8}};

std::optional<double> number(std::string_view text) {
  const auto value = hvd::parse_number<double>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// "8", "4K", "128M", "1G".
std::optional<double> bytes(std::string_view text) {
  double unit = 1;
  for (const auto& [letter, size] :
       {std::pair{'K', 1e0 * (1 << 10)}, {'M', 1e0 * (1 << 20)}, {'G', 1e0 * (1 << 30)}}) {
    if (!text.empty() && (text.back() & ~0x20) == letter) unit = size;
  }
  if (unit > 1) text.remove_suffix(1);
  const auto value = number(text);
  if (!value) return std::nullopt;
  return *value * unit;
}

bool set_type(BenchOptions& options, std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known != name) continue;
    options.type = type;
    return true;
  }
  return false;
}

bool set(BenchOptions& options, std::string_view option, std::string_view value) {
  if (option == "-d") return set_type(options, value);
  if (option == "--device") {
    options.is_cuda = value == "cuda";
    return options.is_cuda || value == "cpu";
  }
  const auto amount = option == "-b" || option == "-e" ? bytes(value) : number(value);
  if (!amount) return false;
  if (option == "-b") options.min_bytes = static_cast<std::size_t>(*amount);
  if (option == "-e") options.max_bytes = static_cast<std::size_t>(*amount);
  if (option == "-f") options.factor = *amount;
  if (option == "-n") options.iterations = static_cast<int>(*amount);
  if (option == "-w") options.warm_up = static_cast<int>(*amount);
  if (option == "-c") options.checks = *amount > 0;
  return true;
}

bool is_known(std::string_view option) {
  constexpr std::array kKnown = {"-b", "-e", "-f", "-n", "-w", "-c", "-d", "--device"};
  for (const std::string_view known : kKnown) {
    if (option == known) return true;
  }
  return false;
}

}  // namespace

std::string bench_usage() {
  return "usage: all_reduce_bench [-b MIN_BYTES] [-e MAX_BYTES] [-f FACTOR] [-n ITERATIONS]\n"
         "         [-w WARM_UP] [-c 0|1] [-d float|double|half|bfloat16|int32|int64|uint8]\n"
         "         [--device cpu|cuda]      sizes: 8, 4K, 128M, 1G\n";
}

hvd::Result<BenchOptions> parse_bench_options(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i < argc; i += 2) {
    if (!is_known(argv[i])) return make_error(ExitCode::kUsage, "no option '{}'", argv[i]);
    if (i + 1 == argc) return make_error(ExitCode::kUsage, "{} needs a value", argv[i]);
    if (!set(options, argv[i], argv[i + 1])) {
      return make_error(ExitCode::kUsage, "{} {} makes no sense", argv[i], argv[i + 1]);
    }
  }
  options.max_bytes = std::max(options.max_bytes, options.min_bytes);
  if (options.min_bytes == 0 || options.factor <= 1 || options.iterations < 1) {
    return make_error(ExitCode::kUsage, "-b and -n begin at 1, and -f is more than 1");
  }
  return options;
}
