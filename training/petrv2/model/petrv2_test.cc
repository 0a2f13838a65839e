// The whole model in the sizes of the configuration "tiny".
#include "training/petrv2/model/petrv2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "training/petrv2/model/autocast.h"
#include "training/petrv2/model/backbone.h"
#include "training/petrv2/verify/filler.h"
#include "training/petrv2/verify/scene.h"

namespace hvd::petrv2 {
namespace {

ModelConfig tiny() { return load_config("tiny")->model; }

Batch tiny_batch(int num_samples, at::ScalarType type = at::kFloat) {
  const ModelConfig config = tiny();
  const int height = config.image.height, width = config.image.width;
  Batch batch;
  batch.image = filled(kImageNumber, {num_samples, kNumViews, 3, height, width}).to(type);
  batch.lidar2img = scene_cameras(num_samples, height, width);
  batch.time_delta = at::full({num_samples}, kSceneTimeDelta, at::kDouble);
  batch.targets.assign(num_samples, scene_targets());
  return batch;
}

ForwardOptions plain() {
  ForwardOptions options;
  options.has_dropout = false;
  return options;
}

void reset_gradients(const Petrv2& model) {
  for (const Parameter& parameter : model.parameters()) parameter.tensor.mutable_grad().reset();
}

// All gradients as one fp64 vector.
at::Tensor gradients_of(Petrv2& model, const Batch& batch, const ForwardOptions& options) {
  reset_gradients(model);
  model.forward_train(batch, {3, 3}, options).total.backward();
  std::vector<at::Tensor> parts;
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.is_trainable) continue;
    EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    parts.push_back(parameter.tensor.grad().to(at::kDouble).flatten());
  }
  return at::cat(parts);
}

double relative(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

TEST(Petrv2, StartsFromItsSeedAlone) {
  const Petrv2 one(tiny(), at::kCPU, at::kFloat, 1), same(tiny(), at::kCPU, at::kFloat, 1),
      other(tiny(), at::kCPU, at::kFloat, 2);
  bool is_other_different = false;
  for (std::size_t i = 0; i < one.parameters().size(); ++i) {
    EXPECT_TRUE(one.parameters()[i].tensor.equal(same.parameters()[i].tensor));
    is_other_different |= !one.parameters()[i].tensor.equal(other.parameters()[i].tensor);
  }
  EXPECT_TRUE(is_other_different);
}

TEST(Petrv2, HasTheNamesOfCheckpoints) {
  std::set<std::string> names;
  const Petrv2 model(tiny(), at::kMeta, at::kFloat, 0);
  for (const Parameter& parameter : model.parameters()) names.insert(parameter.name);
  EXPECT_EQ(names.size(), model.parameters().size());
  for (const char* name :
       {"img_backbone.conv1.weight", "img_backbone.layer2.0.downsample.1.bias",
        "img_neck.lateral_convs.1.conv.bias", "img_neck.fpn_convs.0.conv.weight",
        "pts_bbox_head.input_proj.weight", "pts_bbox_head.position_encoder.2.bias",
        "pts_bbox_head.fpe.conv_expand.weight", "pts_bbox_head.adapt_pos3d.0.weight",
        "pts_bbox_head.query_embedding.2.weight", "pts_bbox_head.code_weights",
        "pts_bbox_head.transformer.decoder.layers.2.attentions.1.attn.out_proj.bias",
        "pts_bbox_head.transformer.decoder.layers.0.ffns.0.layers.0.0.weight",
        "pts_bbox_head.transformer.decoder.layers.0.ffns.0.layers.1.weight",
        "pts_bbox_head.cls_branches.2.6.bias", "pts_bbox_head.reg_branches.1.reg_branch.3.weight",
        "pts_bbox_head.reg_branches.1.task_heads.4.2.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Petrv2, BranchesOfAllLayersStartEqual) {
  const Petrv2 model(tiny(), at::kCPU, at::kFloat, 1);
  std::map<std::string, at::Tensor> tensors;
  for (const Parameter& parameter : model.parameters()) {
    tensors[parameter.name] = parameter.tensor;
  }
  const std::string head = "pts_bbox_head.";
  EXPECT_TRUE(
      tensors[head + "cls_branches.0.3.weight"].equal(tensors[head + "cls_branches.2.3.weight"]));
  EXPECT_TRUE(tensors[head + "reg_branches.0.task_heads.1.2.bias"].equal(
      tensors[head + "reg_branches.2.task_heads.1.2.bias"]));
  EXPECT_NEAR(tensors[head + "cls_branches.1.6.bias"][9].item<double>(), -std::log(99.0), 1e-6);
  EXPECT_FALSE(
      tensors[head + "transformer.decoder.layers.0.attentions.0.attn.in_proj_weight"].equal(
          tensors[head + "transformer.decoder.layers.1.attentions.0.attn.in_proj_weight"]));
}

TEST(Petrv2, DepthsCountTheirTensorsAsTheFillerExpects) {
  const auto last_number = [](int depth) {
    ParameterSet set(at::kMeta, at::kFloat);
    BackboneConfig config;
    config.depth = depth;
    (void)make_resnet(config, set);
    return kFirstBackboneNumber + static_cast<int>(set.all().size()) - 1;
  };
  EXPECT_EQ(last_number(18), 5099);
  EXPECT_EQ(last_number(50), 5264);
  EXPECT_EQ(last_number(101), 5519);
}

TEST(Petrv2, ChannelsLastAndCheckpointsChangeNothing) {
  const Batch batch = tiny_batch(1, at::kDouble);
  ModelConfig config = tiny();
  Petrv2 model(config, at::kCPU, at::kDouble, 1);
  const at::Tensor expected = gradients_of(model, batch, plain());
  config.backbone.has_checkpoints = true;
  config.has_decoder_checkpoints = true;
  Petrv2 checkpointed(config, at::kCPU, at::kDouble, 1);
  EXPECT_LT(relative(gradients_of(checkpointed, batch, plain()), expected), 1e-12);
  checkpointed.use_channels_last();
  Batch interleaved = batch;
  interleaved.image = batch.image.flatten(0, 1)
                          .contiguous(at::MemoryFormat::ChannelsLast)
                          .view(batch.image.sizes());
  EXPECT_LT(relative(gradients_of(checkpointed, interleaved, plain()), expected), 1e-12);
}

TEST(Petrv2, ASampleCountsTheSameAloneAndInABatch) {
  Petrv2 model(tiny(), at::kCPU, at::kDouble, 1);
  const Batch both = tiny_batch(2, at::kDouble);
  Batch second = both;
  second.image = both.image.slice(0, 1, 2);
  second.lidar2img = both.lidar2img.slice(0, 1, 2);
  second.time_delta = both.time_delta.slice(0, 1, 2);
  second.targets = {both.targets[1]};
  const Predictions together = model.predict(both, plain()), alone = model.predict(second, plain());
  EXPECT_LT(relative(together.boxes.slice(1, 1, 2), alone.boxes), 1e-12);
  EXPECT_LT(relative(together.class_logits.slice(1, 1, 2), alone.class_logits), 1e-12);
  EXPECT_GT(relative(together.boxes.slice(1, 0, 1), alone.boxes), 1e-6);  // other images
}

TEST(Petrv2, MixedPrecisionStaysNearAndKeepsTheHeadInFull) {
  Petrv2 model(tiny(), at::kCPU, at::kFloat, 1);
  const Batch batch = tiny_batch(1);
  const at::Tensor expected = gradients_of(model, batch, plain());
  ForwardOptions mixed = plain();
  mixed.precision = Precision::kBf16;
  std::map<std::string, at::ScalarType, std::less<>> types;
  mixed.observer = [&types](std::string_view stage, const at::Tensor& value) {
    types[std::string(stage)] = value.scalar_type();
  };
  const at::Tensor got = gradients_of(model, batch, mixed);
  EXPECT_EQ(types["layer3"], at::kBFloat16);
  EXPECT_EQ(types["P4"], at::kBFloat16);
  EXPECT_EQ(types["projection"], at::kFloat);
  EXPECT_EQ(types["box.2"], at::kFloat);
  EXPECT_LT(relative(got, expected), 0.1);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(Petrv2, ReadsImagesInTheOrderOfItsNetwork) {
  ModelConfig config = tiny();
  const auto pixel_of = [&config](bool is_bgr) {
    config.image.is_bgr = is_bgr;
    config.image.mean = {10, 20, 30};
    config.image.std = {1, 2, 4};
    const Petrv2 model(config, at::kCPU, at::kFloat, 1);
    at::Tensor images = at::zeros({1, kNumViews, 64, 160, 3}, at::kByte);
    images[0][3][5][7].copy_(at::tensor({11, 24, 38}, at::kByte));
    const at::Tensor result = model.normalise(images);
    EXPECT_EQ(result.sizes(), at::IntArrayRef({1, kNumViews, 3, 64, 160}));
    return result[0][3].select(1, 5).select(1, 7);
  };
  EXPECT_TRUE(pixel_of(false).equal(at::tensor({1.0F, 2.0F, 2.0F})));
  EXPECT_TRUE(pixel_of(true).equal(at::tensor({28.0F, 2.0F, -4.75F})));
}

TEST(Petrv2, GridMaskHidesPixelsInTrainingOnly) {
  Petrv2 model(tiny(), at::kCPU, at::kFloat, 1);
  const Batch batch = tiny_batch(1);
  ForwardOptions masked = plain();
  masked.grid_mask = GridMaskDraw{16, 3, 5};
  const double without = model.forward_train(batch, {3, 3}, plain()).total.item<double>();
  EXPECT_NE(model.forward_train(batch, {3, 3}, masked).total.item<double>(), without);
  EXPECT_TRUE(model.predict(batch, masked).boxes.equal(model.predict(batch, plain()).boxes));
}

TEST(Petrv2, DecodesTheBestBoxesInOrder) {
  Predictions predictions;
  predictions.class_logits = at::full({1, 1, 3, kNumClasses}, -9.0);
  predictions.boxes = at::zeros({1, 1, 3, kCodeSize});
  predictions.class_logits[0][0][2][4] = 2.0;
  predictions.class_logits[0][0][0][7] = 1.0;
  predictions.class_logits[0][0][1][7] = 3.0;
  predictions.boxes[0][0][1][4] = 11.0;  // above the range
  const float size = std::log(2.0F);
  predictions.boxes[0][0][2].copy_(
      at::tensor({1.0F, 2.0F, size, 0.0F, 3.0F, 0.0F, 1.0F, 0.0F, 4.0F, 5.0F}));
  const DecodedBoxes decoded = Petrv2::decode(predictions)[0];
  EXPECT_EQ(decoded.boxes.size(0), 20);
  EXPECT_EQ(decoded.labels[0].item<std::int64_t>(), 4);
  EXPECT_NEAR(decoded.scores[0].item<double>(), 1 / (1 + std::exp(-2.0)), 1e-6);
  const at::Tensor expected = at::tensor({1.0, 2.0, 3.0, 2.0, 1.0, 1.0, std::acos(0.0), 4.0, 5.0});
  EXPECT_TRUE(decoded.boxes[0].allclose(expected, 1e-6, 1e-6));
  EXPECT_EQ(decoded.labels[1].item<std::int64_t>(), 7);
}

TEST(Petrv2, CountsPositives) {
  ModelConfig config = tiny();
  config.denoising.groups = 10;
  const Normalisers counts = count_positives(config, {0, 3, 100});
  EXPECT_EQ(counts.boxes, 63);
  EXPECT_EQ(counts.dn_boxes, 1030);
}

// Few plain gradient steps on one sample: the model can follow its gradient.
TEST(Petrv2, LearnsOneSample) {
  Petrv2 model(tiny(), at::kCPU, at::kFloat, 1);
  const Batch batch = tiny_batch(1);
  double first = 0, last = 0;
  for (int step = 0; step < 15; ++step) {
    reset_gradients(model);
    const TrainResult result = model.forward_train(batch, {3, 3}, plain());
    last = result.total.item<double>();
    if (step == 0) first = last;
    result.total.backward();
    const at::NoGradGuard no_grad;
    for (const Parameter& parameter : model.parameters()) {
      if (!parameter.is_trainable) continue;
      const at::Tensor& gradient = parameter.tensor.grad();
      parameter.tensor.sub_(gradient / (gradient.abs().max() + 1e-6), 2e-3);
    }
  }
  EXPECT_LT(last, 0.9 * first);
}

}  // namespace
}  // namespace hvd::petrv2
