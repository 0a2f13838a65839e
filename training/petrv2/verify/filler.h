// Weights and inputs by formula, so that two programs can compute on the same numbers without
// exchanging any. Tensors have numbers: those of the head are fixed, those of backbone and neck
// count up from 5000 in the order of execution. Pure and torch-free.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hvd::petrv2 {

constexpr int kImageNumber = 4000;
constexpr int kFeatureNumber = 1000;
constexpr int kNoiseNumber = 2000;
constexpr int kFirstBackboneNumber = 5000;

// Value k of tensor j, in [-1, 1).
[[nodiscard]] double fill_value(std::uint32_t tensor, std::uint64_t index);

// The first `count` values of a tensor.
[[nodiscard]] std::vector<double> fill_values(std::uint32_t tensor, std::size_t count);

// Gives numbers to the tensors of a head that come in their fixed order; what a configuration lacks
// leaves its numbers unused.
class HeadNumbering {
 public:
  // name: as in checkpoints. -1: the tensor is not filled (the code weights).
  [[nodiscard]] int number(std::string_view name);

 private:
  int next_ = 0;
};

}  // namespace hvd::petrv2
