#include "training/petrv2/verify/verify.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>

#include "training/petrv2/verify/golden.h"
#include "training/petrv2/verify/options.h"
#include "training/petrv2/verify/verify_run.h"

namespace hvd::petrv2 {
namespace {

int report_error(const Error& error) {
  fmt::print(stderr, "petrv2 verify: {}\n", error.message);
  return error.code == ExitCode::kUsage ? static_cast<int>(error.code) : 1;
}

int verify_golden() {
  std::size_t num_missed = 0;
  const GoldenChecks checks = check_all();
  for (const GoldenCheck& check : checks) {
    if (!check.is_good()) ++num_missed;
    fmt::print("{:<4} {:<18} {:<60} {:>18.10g} {:>18.10g} {:>9.1e}\n",
               check.is_good() ? "ok" : "MISS", check.group, check.name, check.got, check.expected,
               std::abs(check.got - check.expected));
  }
  fmt::print("{} golden numbers, {} missed\n", checks.size(), num_missed);
  return num_missed == 0 ? 0 : 1;
}

void print_stages(const nlohmann::ordered_json& report) {
  for (const auto& [name, stage] : report["stages"].items()) {
    fmt::print("{:<12} {:<22} l2 {:.9g}\n", name, stage["shape"].dump(), stage["l2"].get<double>());
  }
  for (const auto& [name, loss] : report["losses"].items()) {
    fmt::print("{:<20} {:.9g}\n", name, loss.get<double>());
  }
  fmt::print("{:<20} {:.9g}\n", "grad_norm", report["grad_norm"].get<double>());
}

int verify_configuration(const VerifyOptions& options) {
  const auto config = load_config(options.config);
  if (!config) return report_error(config.error());
  const auto report = run_configuration(*config, options);
  if (!report) return report_error(report.error());
  print_stages(*report);
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << report->dump(1) << '\n';
  file.close();
  if (file) return 0;
  return report_error({fmt::format("cannot write {}", options.json)});
}

}  // namespace

int run_verify(const std::vector<std::string>& arguments) {
  const auto options = parse_verify_options(arguments);
  if (!options) return report_error(options.error());
  if (options->is_help) {
    fmt::print("{}", verify_help());
    return 0;
  }
  try {
    return options->is_golden ? verify_golden() : verify_configuration(*options);
  } catch (const std::exception& problem) {
    const std::string text = problem.what();
    return report_error({text.substr(0, text.find('\n'))});  // the rest is libtorch's stack
  }
}

}  // namespace hvd::petrv2
