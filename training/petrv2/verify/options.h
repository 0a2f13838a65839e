// Command lines of `petrv2 verify` and `petrv2 inspect`. Pure and torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::petrv2 {

enum class VerifyPrecision { kFp64, kFp32, kTf32, kBf16, kFp16 };

struct VerifyOptions {
  bool is_golden = true;  // no option at all: check the golden numbers
  bool is_help = false;
  std::string config = "petrv2_r50_p4_256x704";
  int height = 0, width = 0;  // px; 0: the configuration's
  int queries = 0;            // 0: the configuration's
  int batch = 1;
  std::string boxes;  // file; empty: three boxes of our own
  double bn3_scale = 1;
  std::string device = "cpu";
  VerifyPrecision precision = VerifyPrecision::kFp32;
  std::string json;  // file to write; empty: none
};

struct InspectOptions {
  bool is_help = false;
  std::string config;
  std::string folder;  // of records
  bool is_json = false;
};

// arguments: without program and subcommand. Errors are one sentence and exit code 2.
[[nodiscard]] Result<VerifyOptions> parse_verify_options(const std::vector<std::string>& arguments);
[[nodiscard]] Result<InspectOptions> parse_inspect_options(
    const std::vector<std::string>& arguments);

[[nodiscard]] std::string verify_help();
[[nodiscard]] std::string inspect_help();
[[nodiscard]] std::string_view precision_name(VerifyPrecision precision);

}  // namespace hvd::petrv2
