#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"

namespace hvd::petrv2 {
namespace {

at::Tensor parameter(std::vector<double> values, at::ScalarType type = at::kDouble) {
  return at::tensor(values, at::kDouble).to(type).requires_grad_(true);
}

const at::Tensor& no_inf() {
  static const at::Tensor zero = at::zeros({}, at::kFloat);
  return zero;
}

TEST(ClipAndStep, FirstStepOfTheKnownCase) {
  at::Tensor weight = parameter({1, -2});
  std::vector<at::Tensor> gradients{at::tensor({30.0, 40.0}, at::kDouble)};
  const ClipResult clipped = clip(gradients, 35);
  EXPECT_DOUBLE_EQ(clipped.norm.item<double>(), 50);
  EXPECT_EQ(clipped.found_inf.item<float>(), 0);
  EXPECT_NEAR(gradients[0][0].item<double>(), 21, 1e-5);
  EXPECT_NEAR(gradients[0][1].item<double>(), 28, 1e-5);
  AdamW optimiser({weight}, {1}, {});
  optimiser.step(gradients, 2e-4, clipped.found_inf);
  EXPECT_NEAR(weight[0].item<double>(), .999798, 1e-9);
  EXPECT_NEAR(weight[1].item<double>(), -2.000196, 1e-9);
}

TEST(Clip, SmallGradientsStayAsTheyAre) {
  std::vector<at::Tensor> gradients{at::tensor({3.0, 4.0}, at::kDouble),
                                    at::tensor({12.0}, at::kDouble)};
  EXPECT_DOUBLE_EQ(clip(gradients, 35).norm.item<double>(), 13);
  EXPECT_EQ(gradients[1].item<double>(), 12);
}

TEST(Clip, UnscalesBeforeItCompares) {
  std::vector<at::Tensor> gradients{at::tensor({30.0f * 512, 40.0f * 512})};
  const LossScale scale(at::kCPU);
  const ClipResult clipped = clip(gradients, 35, scale.inverse());
  EXPECT_FLOAT_EQ(clipped.norm.item<float>(), 50);
  EXPECT_NEAR(gradients[0][0].item<float>(), 21, 1e-4);
}

TEST(AdamW, SkippedStepChangesNothing) {
  at::Tensor weight = parameter({1, -2}, at::kFloat);
  AdamW optimiser({weight}, {1}, {});
  std::vector<at::Tensor> good{at::tensor({1.0f, 2.0f})};
  optimiser.step(good, 1e-2, no_inf());
  const at::Tensor before = weight.detach().clone();
  const at::Tensor moment = optimiser.first_moments()[0].clone();
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<at::Tensor> gradients{at::tensor({1.0f, bad})};
    const ClipResult clipped = clip(gradients, 35);
    EXPECT_EQ(clipped.found_inf.item<float>(), 1);
    optimiser.step(gradients, 1e-2, clipped.found_inf);
  }
  EXPECT_TRUE(at::equal(weight, before));
  EXPECT_TRUE(at::equal(optimiser.first_moments()[0], moment));
  EXPECT_EQ(optimiser.num_steps().item<float>(), 1);
}

TEST(AdamW, EachGroupHasItsRate) {
  at::Tensor head = parameter({1});
  at::Tensor backbone = parameter({1});
  AdamW optimiser({head, backbone}, {1, 0.1}, {});
  std::vector<at::Tensor> gradients{at::ones({1}, at::kDouble), at::ones({1}, at::kDouble)};
  optimiser.step(gradients, 1e-3, no_inf());
  EXPECT_NEAR(1 - head.item<double>(), 1e-3 * 1.01, 1e-9);
  EXPECT_NEAR(1 - backbone.item<double>(), 1e-4 * 1.01, 1e-9);
}

// Weights as convolutions have them for speed, gradients as backward left them: every value must
// meet its own. One step by hand beside it.
TEST(AdamW, ChannelsLastWeightsMeetTheirOwnGradients) {
  const at::Tensor start = at::randn({3, 4, 2, 2}, at::kDouble);
  at::Tensor weight = start.contiguous(at::MemoryFormat::ChannelsLast).clone().requires_grad_(true);
  ASSERT_FALSE(weight.is_contiguous());
  const at::Tensor gradient = at::randn({3, 4, 2, 2}, at::kDouble);
  const at::Tensor laid_out = at::empty_like(weight.detach()).copy_(gradient);
  AdamW optimiser({weight}, {1}, {});
  optimiser.step({laid_out}, 1e-2, no_inf());
  const at::Tensor expected = start * (1 - 1e-2 * 0.01) - 1e-2 * gradient / (gradient.abs() + 1e-8);
  EXPECT_LT((weight - expected).abs().max().item<double>(), 1e-9);
  EXPECT_THROW(optimiser.step({gradient}, 1e-2, no_inf()), c10::Error);
}

TEST(LossScale, GrowsAfterAThousandGoodStepsHalvesAtASkipAndHasATop) {
  LossScale scale(at::kCPU);
  const at::Tensor inf = at::ones({}, at::kFloat);
  for (int i = 0; i < 999; ++i) scale.update(no_inf());
  EXPECT_EQ(scale.value().item<float>(), 512);
  scale.update(no_inf());
  EXPECT_EQ(scale.value().item<float>(), 1024);
  scale.update(inf);
  EXPECT_EQ(scale.value().item<float>(), 512);
  for (int i = 0; i < 9000; ++i) scale.update(no_inf());
  EXPECT_EQ(scale.value().item<float>(), 65536);
}

}  // namespace
}  // namespace hvd::petrv2
