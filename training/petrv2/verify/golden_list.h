// Adds golden checks to a list, with the tolerance that the number of printed digits allows.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "training/petrv2/verify/golden.h"
#include "training/torch.h"

namespace hvd::petrv2 {

constexpr double kGoldenRelative = 1e-8;  // nine significant digits

// What is known of a tensor in fp64; not a number: not given.
struct GoldenTensor {
  std::string name;
  double sum, l2;
  std::vector<double> first;  // at most three
  double last = std::nan("");
};

class GoldenList {
 public:
  explicit GoldenList(std::string group) : group_(std::move(group)) {}

  void add(const std::string& name, double got, double expected, double tolerance) {
    checks_.push_back({group_, name, got, expected, tolerance});
  }
  void add(const std::string& name, double got, double expected) {
    add(name, got, expected, std::abs(expected) * kGoldenRelative);
  }
  // Printed with so many decimals.
  void add_rounded(const std::string& name, double got, double expected, int decimals) {
    add(name, got, expected, 0.5001 * std::pow(10.0, -decimals));
  }
  void add_zero(const std::string& name, double got, double tolerance) {
    add(name, got, 0, tolerance);
  }

  void add(const GoldenTensor& golden, const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().to(at::kDouble).flatten();
    if (!std::isnan(golden.sum)) add(golden.name + " sum", flat.sum().item<double>(), golden.sum);
    if (!std::isnan(golden.l2)) add(golden.name + " L2", flat.norm().item<double>(), golden.l2);
    for (std::size_t i = 0; i < golden.first.size(); ++i) {
      add(golden.name + " [" + std::to_string(i) + "]",
          flat[static_cast<std::int64_t>(i)].item<double>(), golden.first[i]);
    }
    if (!std::isnan(golden.last)) {
      add(golden.name + " [last]", flat[-1].item<double>(), golden.last);
    }
  }

  [[nodiscard]] GoldenChecks take() { return std::move(checks_); }

 private:
  const std::string group_;
  GoldenChecks checks_;
};

}  // namespace hvd::petrv2
