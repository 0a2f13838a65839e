// Single formulas: filler, focal loss and cost, codes, assignment, log-odds, frustum, embeddings,
// schedule, optimiser.
#include <fmt/format.h>

#include "training/petrv2/loss/losses.h"
#include "training/petrv2/loss/matching_cost.h"
#include "training/petrv2/model/parameter_table.h"
#include "training/petrv2/model/position.h"
#include "training/petrv2/optim/adamw.h"
#include "training/petrv2/optim/clip.h"
#include "training/petrv2/optim/schedule.h"
#include "training/petrv2/verify/filler.h"
#include "training/petrv2/verify/golden_list.h"

namespace hvd::petrv2 {
namespace {

at::Tensor row(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

void check_filler(GoldenList& list) {
  list.add("u(0, 0)", fill_value(0, 0), -1);
  list.add_rounded("u(0, 1)", fill_value(0, 1), -.36480228, 8);
  list.add_rounded("u(0, 2)", fill_value(0, 2), -.61753046, 8);
  list.add_rounded("u(0, 3)", fill_value(0, 3), .04640819, 8);
  list.add_rounded("u(7, 0)", fill_value(7, 0), -.05675941, 8);
  list.add_rounded("u(7, 1)", fill_value(7, 1), .94473536, 8);
  list.add_rounded("u(7, 2)", fill_value(7, 2), -.05637561, 8);
}

void check_focal(GoldenList& list) {
  const std::vector<double> logits{-4.59511985, 0, 2};
  const std::vector<double> as_negative{7.53775189e-7, .0433216988 * 3, 1.23755863};
  const std::vector<double> as_positive{1.12838182, .0433216988, 4.50890709e-4};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto loss = [&](bool target) {
      return focal_loss(row({logits[i]}), at::full({1}, target, at::kBool)).item<double>();
    };
    list.add(fmt::format("focal loss {}, y = 0", logits[i]), loss(false), as_negative[i]);
    list.add(fmt::format("focal loss {}, y = 1", logits[i]), loss(true), as_positive[i]);
  }
  const std::vector<double> cost_logits{-4.59511985, 0, 2, -2};
  const std::vector<double> costs{2.25676214, -.173286795, -2.47421549, .822333745};
  const at::Tensor got = focal_cost(row(cost_logits));
  for (std::int64_t i = 0; i < 4; ++i) {
    list.add(fmt::format("focal cost {}", cost_logits[i]), got[i].item<double>(), costs[i]);
  }
}

void check_code(GoldenList& list) {
  const at::Tensor code = target_code(row({10, -5, 1, 1.9, 4.5, 1.6, .3, 2, -1}).unsqueeze(0))[0];
  const std::vector<double> expected{10,         -5,         .641853886, 1.50407740, 1,
                                     .470003629, .295520207, .955336489, 2,          -1};
  for (std::int64_t i = 0; i < kCodeSize; ++i) {
    list.add(fmt::format("target code [{}]", i), code[i].item<double>(), expected[i]);
  }
}

// Four queries, two boxes, two classes (the others impossible).
void check_assignment(GoldenList& list) {
  at::Tensor logits = at::full({1, 4, kNumClasses}, -1e3, at::kDouble);
  logits[0].slice(1, 0, 2).copy_(row({2, -2, -1, 1, 0, 0, -4, -4}).view({4, 2}));
  at::Tensor boxes = row({0, 0, .5, 1.4, -1, .4, .1, .99, 0, 0}).repeat({1, 4, 1});
  boxes[0].slice(1, 0, 2).copy_(row({1, 2, 9, -3, 1.2, 2.1, 0, 0}).view({4, 2}));
  boxes[0][3].copy_(row({0, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
  MatchingTargets targets{
      at::tensor(std::vector<std::int64_t>{1, 0}, at::kLong).view({1, 2}),
      row({1.1, 2, .5, 1.4, -1, .4, .1, .99, 0, 0, 9.5, -3, .5, 1.4, -1, .4, .1, .99, 0, 0})
          .view({1, 2, kCodeSize}),
      {2}};
  const at::Tensor ones = at::ones({kCodeSize}, at::kDouble);
  const at::Tensor cost = matching_cost(logits, boxes, targets, MatcherKind::kPlain, ones)[0];
  const std::vector<double> expected{.8473, .9008, 2.1835, .4419, -.1233, 3.1767, 3.5649, 5.9149};
  for (std::int64_t i = 0; i < 8; ++i) {
    list.add_rounded(fmt::format("cost [{}]", i), cost.flatten()[i].item<double>(), expected[i], 4);
  }
  boost::asio::thread_pool pool(1);
  const Assignment pairs = solve_in(pool, cost.unsqueeze(0), {2})[0].get();
  list.add("query 1 has box 1", pairs[0] == MatchedPair{1, 1}, 1);
  list.add("query 2 has box 0", pairs[1] == MatchedPair{2, 0}, 1);
  const LossTargets loss_targets{
      targets.codes[0], at::ones({2}, at::kDouble), targets.labels[0], {0}};
  const LossTerms terms =
      detection_losses(logits.unsqueeze(0), boxes.unsqueeze(0), {{pairs}}, loss_targets, ones, 2);
  list.add_rounded("focal loss of the layer", terms[0].second.item<double>(), 2.1141, 4);
  list.add_rounded("box loss of the layer", terms[1].second.item<double>(), .0875, 4);
}

void check_log_odds(GoldenList& list) {
  const auto log_odds = [](double x) { return inverse_sigmoid(row({x})).item<double>(); };
  list.add_rounded("log-odds of -0.1", log_odds(-.1), -11.512925, 6);
  list.add_rounded("log-odds of 0", log_odds(0), -11.512925, 6);
  list.add_rounded("log-odds of 1e-6", log_odds(1e-6), -11.512924, 6);
  list.add_rounded("log-odds of 1e-4", log_odds(1e-4), -9.21024, 5);
  list.add_rounded("log-odds of 0.25", log_odds(.25), -1.098612, 6);
  list.add_rounded("log-odds of 1.2", log_odds(1.2), 11.512925, 6);
  list.add("log-odds of 0.99999 in fp32",
           inverse_sigmoid(row({.99999}).to(at::kFloat)).item<double>(), 11.51156, 2e-5);
}

void check_frustum(GoldenList& list) {
  const std::vector<int> bins{0, 1, 2, 10, 31, 32, 62, 63};
  const std::vector<double> depths{1.0,          1.028942308,  1.086826923,  2.591826923,
                                   15.355384615, 16.281538462, 57.524326923, 59.347692308};
  const at::Tensor depth = depth_bins(64);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    list.add_rounded(fmt::format("depth bin {}", bins[i]), depth[bins[i]].item<double>(), depths[i],
                     9);
  }
  // f 1266.4172, centre (816.267, 491.507), halved for 320x800 and cropped by 130 rows.
  const at::Tensor intrinsic =
      row({633.2086, 0, 408.1335, 0, 0, 633.2086, 115.7535, 0, 0, 0, 1, 0, 0, 0, 0, 1})
          .view({4, 4});
  const at::Tensor lidar2cam =
      row({1, 0, 0, 0, 0, 0, -1, -.3, 0, 1, 0, -.4, 0, 0, 0, 1}).view({4, 4});
  const at::Tensor coords = frustum_coords(intrinsic.matmul(lidar2cam).unsqueeze(0), {20, 50, 16},
                                           64, at::dtype(at::kDouble))[0];
  const std::vector<double> near{.493771936, .988134741, .277649084};
  const std::vector<double> odds{-.0249135, 4.4222043, -.9561530};
  const at::Tensor point = coords[10][25][63];
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    list.add_rounded(fmt::format("frustum (10, 25, 63) [{}]", axis), point[axis].item<double>(),
                     near[axis], 8);
    list.add_rounded(fmt::format("its log-odds [{}]", axis),
                     inverse_sigmoid(point)[axis].item<double>(), odds[axis], 6);
  }
  const at::Tensor corner = coords[19][49][63];
  list.add_rounded("frustum (19, 49, 63) x", (corner[0].item<double>() * 122.4) - 61.2, 35.228216,
                   5);
  list.add_rounded("frustum (19, 49, 63) z", corner[2].item<double>(), -.397, 3);
  list.add_rounded("its log-odds", inverse_sigmoid(corner)[2].item<double>(), -11.512925, 6);
}

void check_embeddings(GoldenList& list) {
  const at::Tensor sine = sine_embedding(12, {20, 50, 16}, 128);
  const std::vector<std::pair<int, double>> expected{
      {0, .499999962},   {1, .438040555},   {2, .382632226},   {3, .333501609},
      {64, .866025426},  {65, .898955211},  {66, .923900741},  {128, .309016979},
      {129, .268707281}, {192, .951056521}, {193, .963221884}, {256, .125333231},
      {257, .108605639}, {320, .992114702}, {321, .994084913}};
  for (const auto& [channel, value] : expected) {
    list.add_rounded(fmt::format("sine channel {}", channel), sine[0][0][0][channel].item<double>(),
                     value, 9);
  }
  list.add_rounded("sine mean", sine.mean().item<double>(), .4936174, 7);
  const at::Tensor anchor = anchor_embedding(row({.1, .2, .3}), 128);
  const std::vector<std::pair<int, double>> channels{
      {0, .951056516},   {1, .309016994},    {2, .885794333},   {3, .464078010},
      {128, .587785252}, {129, .809016994},  {130, .517649491}, {131, .855592780},
      {256, .951056516}, {257, -.309016994}, {258, .998108981}, {259, -.061469191}};
  for (const auto& [channel, value] : channels) {
    list.add_rounded(fmt::format("anchor channel {}", channel), anchor[channel].item<double>(),
                     value, 9);
  }
  list.add_rounded("anchor sum", anchor.sum().item<double>(), 206.584052, 6);
  const std::vector<double> hard{0, 1.0 / 3, .5, 2.0 / 3, 1};
  const at::Tensor got = at::hardsigmoid(row({-4, -1, 0, 1, 4}));
  for (std::int64_t i = 0; i < 5; ++i) {
    list.add(fmt::format("hard sigmoid [{}]", i), got[i].item<double>(), hard[i], 1e-15);
  }
}

void check_step(GoldenList& list) {
  const Schedule schedule{24, 500, 1.0 / 3, 1e-3, 8};
  const auto rate = [&schedule](std::uint64_t iteration) {
    return schedule.rate(2e-4, iteration / 3517, iteration * 8);
  };
  list.add_rounded("rate at iteration 0", rate(0), 6.6667e-5, 9);
  list.add_rounded("rate at iteration 499", rate(499), 1.997333e-4, 10);
  list.add("rate in epoch 1", rate(3517), 1.991453417e-4);
  list.add("rate in epoch 23", rate(23 * 3517), 1.054658349e-6);
  at::Tensor weight = row({1, -2});
  at::Tensor gradient = row({30, 40});
  const ClipResult clipped = clip({gradient}, 35);
  list.add("norm before clipping", clipped.norm.item<double>(), 50);
  list.add("clipped gradient [0]", gradient[0].item<double>(), 21, 1e-6);
  list.add("clipped gradient [1]", gradient[1].item<double>(), 28, 1e-6);
  AdamW optimiser({weight}, {1.0}, {});
  optimiser.step({gradient}, 2e-4, clipped.found_inf);
  list.add("stepped weight [0]", weight[0].item<double>(), .999798, 1e-8);
  list.add("stepped weight [1]", weight[1].item<double>(), -2.000196, 1e-8);
}

double count_values(const std::string& config, std::string_view prefix) {
  const auto loaded = load_config(config);
  double count = 0;
  for (const TableRow& row_of_table : list_tensors(loaded.value().model)) {
    if (row_of_table.name.starts_with(prefix)) {
      count += static_cast<double>(c10::multiply_integers(row_of_table.shape));
    }
  }
  return count;
}

}  // namespace

GoldenChecks check_small_cases() {
  const at::NoGradGuard no_grad;
  GoldenList list("formulas");
  check_filler(list);
  check_focal(list);
  check_code(list);
  check_assignment(list);
  check_log_odds(list);
  check_frustum(list);
  check_embeddings(list);
  check_step(list);
  return list.take();
}

GoldenChecks check_parameter_counts() {
  GoldenList list("parameters");
  const std::string r50 = "petrv2_r50_p4_256x704";
  list.add(r50, count_values(r50, ""), 39428942, 0);
  list.add(r50 + " head", count_values(r50, "pts_bbox_head."), 14543886, 0);
  list.add(r50 + " backbone", count_values(r50, "img_backbone."), 23508032, 0);
  list.add(r50 + " neck", count_values(r50, "img_neck."), 1377024, 0);
  list.add("petrv2_r50_c5_256x704", count_values("petrv2_r50_c5_256x704", ""), 38510670, 0);
  list.add("petrv2_r18_p4_256x704", count_values("petrv2_r18_p4_256x704", ""), 26507598, 0);
  const std::string v99 = "petrv2_vovnet_gridmask_p4_800x320";
  list.add(v99, count_values(v99, ""), 85116750, 0);
  list.add(v99 + " backbone", count_values(v99, "img_backbone."), 69523520, 0);
  const std::string r101 = "petrv2_r101_gridmask_p4_1600x640_dn_flash_nuim";
  list.add(r101 + " backbone", count_values(r101, "img_backbone."), 42500160, 0);
  const std::string flash = "petrv2_r50_gridmask_p4_704x256_dn_flash_nuim";
  list.add(flash, count_values(flash, ""), 38774102, 0);
  return list.take();
}

}  // namespace hvd::petrv2
