// For tests of the synchroniser: ranks as threads of one process, and a model whose gradients are
// what the test says.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hvdrun/gradient_synchronizer.h"
#include "tests/support/rank_team.h"

namespace hvd::test {

inline constexpr std::chrono::seconds kLongTimeout{20};

// Small buckets, so that small models have several.
inline SyncOptions small_buckets() {
  SyncOptions options;
  options.first_bucket_bytes = 64;
  options.bucket_bytes = 256;
  options.timeout = kLongTimeout;
  return options;
}

// body(data, control) on a thread for each rank.
inline void with_ranks(int size,
                       const std::function<void(Communicator& data, Communicator& control)>& body) {
  Team data = connect_team(size);
  Team control = connect_team(size);
  on_threads(size, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (data[index] && control[index]) body(*data[index], *control[index]);
  });
}

// The gradient of each parameter is the tensor that the loss multiplies it with.
class LinearModel {
 public:
  at::Tensor& add(const std::string& name, at::IntArrayRef sizes,
                  at::ScalarType type = at::kDouble) {
    parameters_.push_back({name, at::ones(sizes, type).requires_grad_(true)});
    return parameters_.back().tensor;
  }

  [[nodiscard]] std::vector<NamedParameter>& parameters() { return parameters_; }
  [[nodiscard]] at::Tensor operator[](const std::string& name) const {
    for (const auto& parameter : parameters_) {
      if (parameter.name == name) return parameter.tensor;
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  using Factors = std::function<at::Tensor(const NamedParameter&)>;  // undefined: left out
  [[nodiscard]] at::Tensor loss(const Factors& factors) const {
    at::Tensor total = at::zeros({}, at::kDouble);
    for (const auto& parameter : parameters_) {
      const at::Tensor factor = factors(parameter);
      if (factor.defined()) total = total + (parameter.tensor * factor).sum().to(at::kDouble);
    }
    return total;
  }

 private:
  std::vector<NamedParameter> parameters_;
};

// Small whole numbers, which every type holds: other ones for each name, rank and step.
inline at::Tensor known_gradient(const NamedParameter& parameter, int rank, int step) {
  const auto shift = static_cast<double>(parameter.name.size() + parameter.name.back()) / 2;
  const at::Tensor& like = parameter.tensor;
  return (at::arange(like.numel(), at::kDouble).remainder(7) + 4 * rank + step + std::floor(shift))
      .view(like.sizes())
      .to(like.scalar_type());
}

inline at::Tensor known_mean(const NamedParameter& parameter, int size, int step) {
  at::Tensor sum = at::zeros(parameter.tensor.sizes(), at::kDouble);
  for (int rank = 0; rank < size; ++rank) sum += known_gradient(parameter, rank, step);
  return (sum / size).to(parameter.tensor.scalar_type());
}

inline std::unique_ptr<GradientSynchronizer> make_synchronizer(LinearModel& model,
                                                               Communicator& data,
                                                               Communicator& control,
                                                               const SyncOptions& options) {
  auto made = GradientSynchronizer::create(model.parameters(), data, control, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

}  // namespace hvd::test
