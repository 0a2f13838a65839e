// AdamW over libtorch's fused kernel, on the CPU and on a GPU. A step whose gradients were not all
// finite changes nothing: neither weights nor moments nor the count of steps. Decay holds for every
// parameter. Thread: the trainer's.
#pragma once

#include <array>
#include <vector>

#include "training/torch.h"

namespace hvd::petrv2 {

struct AdamWOptions {
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
};

class AdamW {
 public:
  // The rate of parameter i is lr * lr_factors[i].
  AdamW(std::vector<at::Tensor> parameters, std::vector<double> lr_factors, AdamWOptions options);

  // Gradients in the parameters' order, with their strides (checked). found_inf: one fp32 value on
  // the parameters' device; not 0: nothing is changed.
  void step(const std::vector<at::Tensor>& gradients, double lr, const at::Tensor& found_inf);

  // State: moments in the parameters' order, with their shape and strides; one fp32 count of the
  // steps that were not skipped.
  [[nodiscard]] const std::vector<at::Tensor>& first_moments() const { return first_moments_; }
  [[nodiscard]] const std::vector<at::Tensor>& second_moments() const { return second_moments_; }
  [[nodiscard]] const at::Tensor& num_steps() const { return num_steps_; }

 private:
  struct Group {  // of one rate
    double lr_factor;
    std::vector<std::size_t> indices;
  };
  const std::vector<at::Tensor> parameters_;
  const AdamWOptions options_;
  std::vector<Group> groups_;
  std::vector<at::Tensor> first_moments_, second_moments_;
  at::Tensor num_steps_;
};

}  // namespace hvd::petrv2
