// Geometry, attention, gradients and behaviour of the head, in fp64 and small sizes.
#include <gtest/gtest.h>

#include <cmath>

#include "training/petrv2/loss/losses.h"
#include "training/petrv2/loss/matching_cost.h"
#include "training/petrv2/model/small_head.h"

namespace hvd::petrv2 {
namespace {

const at::TensorOptions kFp64 = at::dtype(at::kDouble);
const FeatureGrid kGrid{4, 6, 16};

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(Frustum, ViewsOfEqualCamerasAreEqual) {
  at::Tensor cameras = scene_cameras(1, 64, 96)[0];
  cameras.slice(0, 6, 12).copy_(cameras.slice(0, 0, 6).clone());
  const at::Tensor coords = frustum_coords(cameras, kGrid, 64, kFp64);
  EXPECT_TRUE(coords.slice(0, 0, 6).equal(coords.slice(0, 6, 12)));
}

TEST(Frustum, AFlippedCameraSeesTheMirroredColumn) {
  const at::Tensor cameras = scene_cameras(1, 64, 96)[0];
  at::Tensor flip = at::eye(4, kFp64);
  flip[0][0] = -1;
  flip[0][2] = 96;
  const at::Tensor plain = frustum_coords(cameras, kGrid, 64, kFp64);
  const at::Tensor flipped = frustum_coords(flip.matmul(cameras), kGrid, 64, kFp64);
  for (int column = 1; column < 6; ++column) {  // u = W - 16 j is the cell w - j
    EXPECT_LT(max_difference(flipped.select(2, column), plain.select(2, 6 - column)), 1e-9);
  }
}

TEST(Frustum, SinglePrecisionIsCloseEnough) {
  const at::Tensor cameras = scene_cameras(1, 256, 704)[0];
  const FeatureGrid grid{16, 44, 16};
  const at::Tensor exact = frustum_coords(cameras, grid, 64, kFp64);
  const at::Tensor single = frustum_coords(cameras, grid, 64, at::dtype(at::kFloat));
  EXPECT_LT(max_difference(single.to(at::kDouble), exact), 2e-6);
  EXPECT_LT(max_difference(inverse_sigmoid(single).to(at::kDouble), inverse_sigmoid(exact)), 1e-2);
}

// softmax(q k / sqrt(d)) v written out.
TEST(Attention, EqualsTheExplicitSoftmax) {
  ParameterSet set(at::kCPU, at::kDouble);
  const Attention attention(set, "a", 32, 4);
  set.initialise(1);
  const at::Tensor query = filled(1, {2, 5, 32}), key = filled(2, {2, 9, 32}),
                   value = filled(3, {2, 9, 32});
  at::Tensor mask = at::ones({5, 9}, at::kBool);
  mask[2].slice(0, 0, 7).fill_(false);
  const auto& parameters = set.parameters();
  const auto project = [&](const at::Tensor& x, int third) {
    return at::linear(x, parameters[0].tensor.slice(0, 32 * third, 32 * third + 32),
                      parameters[1].tensor.slice(0, 32 * third, 32 * third + 32))
        .view({2, -1, 4, 8})
        .transpose(1, 2);
  };
  const at::Tensor scores =
      (project(query, 0).matmul(project(key, 1).transpose(2, 3)) / std::sqrt(8.0))
          .masked_fill(mask.logical_not(), -INFINITY);
  const at::Tensor mixed = scores.softmax(-1).matmul(project(value, 2)).transpose(1, 2).flatten(2);
  const at::Tensor expected = at::linear(mixed, parameters[2].tensor, parameters[3].tensor);
  EXPECT_LT(max_difference(attention(query, key, value, mask, 0), expected), 1e-12);
  const at::Tensor all = at::ones({5, 9}, at::kBool);
  EXPECT_LT(
      max_difference(attention(query, key, value, all, 0), attention(query, key, value, {}, 0)),
      1e-12);
}

TEST(Boxes, DoublingTheTimeHalvesVelocitiesAndTheirGradients) {
  const at::Tensor anchors = filled(1, {1, 7, 3}) * 0.4 + 0.5;
  const auto gradient_of = [&](double seconds) {
    const at::Tensor raw = filled(2, {1, 7, 10}).set_requires_grad(true);
    const at::Tensor boxes = boxes_from_raw(raw, anchors, at::full({1}, seconds, kFp64));
    boxes.slice(2, 8, 10).sum().backward();
    return std::pair(boxes.detach(), raw.grad());
  };
  const auto [boxes, gradient] = gradient_of(0.5);
  const auto [slower, smaller] = gradient_of(1.0);
  EXPECT_TRUE(boxes.slice(2, 8, 10).equal(2 * slower.slice(2, 8, 10)));
  EXPECT_TRUE(boxes.slice(2, 0, 8).equal(slower.slice(2, 0, 8)));
  EXPECT_TRUE(gradient.equal(2 * smaller));
}

// Along a fixed direction through each parameter: the slope of the loss by differences and by
// backward. Assignments are held.
void expect_gradients_by_differences(SmallHead& small) {
  const LayerAssignments held = small.run().assignments;
  small.options.forced_assignments = &held;
  (void)small.gradients();
  std::vector<Parameter> all = small.set.parameters();
  all.push_back({"feature", small.feature, true, false, TensorRole::kConvWeight});
  const double step = 1e-6;
  for (const Parameter& parameter : all) {
    if (!parameter.is_trainable) continue;
    const at::NoGradGuard no_grad;
    const at::Tensor direction =
        filled(77, parameter.tensor.sizes()) * parameter.tensor.abs().mean();
    const double expected = (parameter.tensor.grad() * direction).sum().item<double>();
    parameter.tensor.add_(direction, step);
    const double above = small.run().total.item<double>();
    parameter.tensor.sub_(direction, 2 * step);
    const double below = small.run().total.item<double>();
    parameter.tensor.add_(direction, step);
    EXPECT_NEAR((above - below) / (2 * step), expected, 1e-6 * std::max(1.0, std::abs(expected)))
        << parameter.name;
  }
}

TEST(Gradients, EqualDifferencesForEveryParameter) {
  SmallHead small(small_config());
  expect_gradients_by_differences(small);
}

TEST(Gradients, EqualDifferencesForTheVariantWithDenoising) {
  ModelConfig config = small_config();
  config.denoising.groups = 2;
  config.has_sine = false;
  config.matcher = MatcherKind::kWeighted;
  config.code_weights[0] = 2;
  SmallHead small(config);
  expect_gradients_by_differences(small);
}

TEST(Gradients, FocalLossEqualsDifferences) {
  const at::Tensor target = filled(4, {40}).gt(0.5);
  at::Tensor logits = (filled(3, {40}) * 6).set_requires_grad(true);
  focal_loss(logits, target).sum().backward();
  const at::NoGradGuard no_grad;
  const at::Tensor slope =
      (focal_loss(logits + 1e-6, target) - focal_loss(logits - 1e-6, target)) / 2e-6;
  EXPECT_LT(max_difference(slope, logits.grad()), 1e-8);
}

TEST(Gradients, AnchorsOutsideTheClampGetNone) {
  at::Tensor anchors = at::tensor({-0.1, 0.5, 1.2}, kFp64).set_requires_grad(true);
  inverse_sigmoid(anchors).sum().backward();
  EXPECT_EQ(anchors.grad()[0].item<double>(), 0);
  EXPECT_EQ(anchors.grad()[1].item<double>(), 4);
  EXPECT_EQ(anchors.grad()[2].item<double>(), 0);
}

TEST(Gradients, ThoseOfKeysBiasAndFirstSelfAttentionVanish) {
  SmallHead small(small_config());
  (void)small.gradients();
  for (const Parameter& parameter : small.set.parameters()) {
    const at::Tensor gradient = parameter.tensor.grad();
    if (parameter.name.ends_with("in_proj_bias")) {
      EXPECT_LT(gradient.slice(0, 32, 64).norm().item<double>(), 1e-12) << parameter.name;
    }
    if (parameter.name.ends_with("adapt_pos3d.2.bias") ||
        parameter.name.ends_with("layers.0.attentions.0.attn.in_proj_weight")) {
      EXPECT_LT(gradient.norm().item<double>(), 1e-12) << parameter.name;
    }
  }
}

TEST(Checkpoint, ChangesNeitherGradientsNorTheDrawsThatFollow) {
  const auto run = [](bool has_checkpoints) {
    ModelConfig config = small_config();
    config.has_decoder_checkpoints = has_checkpoints;
    SmallHead small(config);
    small.options.has_dropout = true;
    at::manual_seed(3);
    std::vector<at::Tensor> gradients = small.gradients();
    gradients.push_back(small.feature.grad());
    gradients.push_back(at::rand({4}));
    return gradients;
  };
  const std::vector<at::Tensor> plain = run(false), again = run(true);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_LE(max_difference(plain[i], again[i]), 1e-13 * (1 + plain[i].abs().max().item<double>()))
        << i;
  }
}

TEST(Denoising, NothingFlowsToTheLearnedQueries) {
  ModelConfig config = small_config();
  config.denoising.groups = 2;
  SmallHead small(config);
  const Predictions first = small.run().predictions;
  small.options.dn_noise = -small.options.dn_noise;
  const TrainResult second = small.run();
  EXPECT_TRUE(first.boxes.equal(second.predictions.boxes));
  EXPECT_TRUE(first.class_logits.equal(second.predictions.class_logits));
  EXPECT_EQ(second.terms.size(), 8u);
}

TEST(Denoising, SamplesOfUnequalCountsShareTheSlots) {
  ModelConfig config = small_config();
  config.denoising.groups = 2;
  const Targets three = scene_targets();
  const Targets one{three.boxes.slice(0, 1, 2), three.labels.slice(0, 1, 2)};
  const DenoisingQueries queries =
      make_denoising_queries({one, three}, at::zeros({8, 3}, kFp64), config, kFp64);
  EXPECT_EQ(queries.num_slots, 6);
  const std::vector<std::int64_t> slots{0, 6, 7, 8, 3, 9, 10, 11};
  EXPECT_TRUE(queries.slots.equal(at::tensor(slots, at::kLong)));
  const std::vector<std::int64_t> labels{8, 0, 8, 3, 8, 0, 8, 3};
  EXPECT_TRUE(queries.labels.equal(at::tensor(labels, at::kLong)));
  EXPECT_EQ(queries.anchors[0][1].norm().item<double>(), 0);  // not used
  EXPECT_NEAR(queries.anchors[0][3][0].item<double>(), (-20 + 51.2) / 102.4, 1e-12);
  EXPECT_FALSE(queries.mask[0][3].item<bool>());  // another group
  EXPECT_TRUE(queries.mask[0][6].item<bool>());   // a learned query
  EXPECT_FALSE(queries.mask[6][0].item<bool>());
}

TEST(Losses, NoBoxesLeaveAGraphAndZeroBoxLoss) {
  for (const int groups : {0, 2}) {
    ModelConfig config = small_config();
    config.denoising.groups = groups;
    SmallHead small(config);
    small.targets = {{at::zeros({0, 9}, kFp64), at::zeros({0}, at::kLong)}};
    small.options.dn_noise = at::zeros({0, 3}, kFp64);
    const TrainResult result = small.run();
    EXPECT_EQ(result.terms.size(), groups == 0 ? 4u : 8u);
    EXPECT_TRUE(result.total.isfinite().item<bool>());
    EXPECT_EQ(result.terms[2].first, "loss_box.d0");
    EXPECT_EQ(result.terms[2].second.item<double>(), 0);
    for (const at::Tensor& gradient : small.gradients()) ASSERT_TRUE(gradient.defined());
  }
}

TEST(Losses, MoreBoxesThanQueriesUseEveryQuery) {
  SmallHead small(small_config());
  const Targets three = scene_targets();
  small.targets = {{three.boxes.repeat({4, 1}), three.labels.repeat({4})}};
  const TrainResult result = small.run();
  EXPECT_EQ(result.assignments[0][0].size(), 8u);
  EXPECT_TRUE(result.total.isfinite().item<bool>());
}

TEST(Losses, DuplicateBoxesGetDifferentQueries) {
  SmallHead small(small_config());
  const Targets three = scene_targets();
  small.targets = {
      {three.boxes.slice(0, 0, 1).repeat({2, 1}), three.labels.slice(0, 0, 1).repeat({2})}};
  const Assignment pairs = small.run().assignments[1][0];
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_NE(pairs[0].query, pairs[1].query);
}

TEST(Losses, RowsThatAreNotFiniteAreDropped) {
  SmallHead small(small_config());
  small.targets[0].boxes[1][3] = 0;  // log of no width
  const TrainResult result = small.run();
  EXPECT_TRUE(result.total.isfinite().item<bool>());
  for (const at::Tensor& gradient : small.gradients()) {
    ASSERT_TRUE(gradient.isfinite().all().item<bool>());
  }
  // The class is still learned: as many positives as boxes.
  EXPECT_EQ(result.assignments[0][0].size(), 3u);
}

TEST(Losses, TheBoxTermTakesItsNormaliserTheClassTermDoesNot) {
  SmallHead small(small_config());
  const TrainResult three = small.run();
  small.normalisers.boxes = 6;
  const TrainResult six = small.run();
  EXPECT_EQ(three.terms[0].second.item<double>(), six.terms[0].second.item<double>());
  EXPECT_NEAR(three.terms[2].second.item<double>(), 2 * six.terms[2].second.item<double>(), 1e-12);
}

TEST(Losses, StartAtTheExpectedClassLoss) {
  const at::Tensor logits = at::full({1, 1, 900, kNumClasses}, -std::log(99.0), kFp64);
  const at::Tensor boxes = at::zeros({1, 1, 900, kCodeSize}, kFp64);
  const Targets three = scene_targets();
  const LossTargets targets =
      make_loss_targets({{three.boxes.repeat({10, 1}), three.labels.repeat({10})}}, kFp64);
  Assignment pairs;
  for (int i = 0; i < 30; ++i) pairs.push_back({i, i});
  const LossTerms terms =
      detection_losses(logits, boxes, {{pairs}}, targets, at::ones({kCodeSize}, kFp64), 30);
  EXPECT_NEAR(terms[0].second.item<double>(), 2.2572, 5e-5);
}

}  // namespace
}  // namespace hvd::petrv2
