// Golden numbers of the specification: what this build computes beside what it has to.
#pragma once

#include <string>
#include <vector>

namespace hvd::petrv2 {

struct GoldenCheck {
  std::string group;  // "head", "denoising", "VoVNetV2-99", ...
  std::string name;
  double got = 0;
  double expected = 0;
  double tolerance = 0;  // absolute

  [[nodiscard]] bool is_good() const;
};

using GoldenChecks = std::vector<GoldenCheck>;

[[nodiscard]] GoldenChecks check_small_cases();     // formulas by themselves
[[nodiscard]] GoldenChecks check_head();            // 20 queries, 4x6 cells, fp64
[[nodiscard]] GoldenChecks check_denoising_head();  // the same with two groups
[[nodiscard]] GoldenChecks check_backbones();       // VoVNetV2-99, ResNet-50 in both styles, fp64
[[nodiscard]] GoldenChecks check_parameter_counts();
[[nodiscard]] GoldenChecks check_all();

}  // namespace hvd::petrv2
