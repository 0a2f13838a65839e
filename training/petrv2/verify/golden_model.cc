// The head with and without denoising queries, and the backbones, on formula weights in fp64.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "training/petrv2/loss/matching_cost.h"
#include "training/petrv2/model/head_training.h"
#include "training/petrv2/model/neck.h"
#include "training/petrv2/verify/filler.h"
#include "training/petrv2/verify/golden_list.h"
#include "training/petrv2/verify/scene.h"

namespace hvd::petrv2 {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

ModelConfig golden_config() {
  ModelConfig config;
  config.image.height = 64;
  config.image.width = 96;
  config.queries = 20;
  return config;
}

// One run of the golden head: forward, losses, backward.
struct HeadRun {
  ParameterSet set{at::kCPU, at::kDouble};
  at::Tensor feature;
  std::map<std::string, at::Tensor, std::less<>> stages;
  TrainResult result;
  at::Tensor last_cost;  // (Q, 3), of the last layer

  explicit HeadRun(const ModelConfig& config) {
    const Head head(config, config.embed, set);
    fill_tensors(set);
    feature = filled(kFeatureNumber, {kNumViews, config.embed, 4, 6}).set_requires_grad(true);
    const HeadInput input{feature, scene_cameras(1, 64, 96),
                          at::full({1}, kSceneTimeDelta, at::kDouble), nullptr, false};
    ForwardOptions options;
    options.has_dropout = false;
    options.dn_noise = scene_noise(3 * config.denoising.groups);
    options.observer = [this](std::string_view stage, const at::Tensor& value) {
      stages[std::string(stage)] = value.detach();
    };
    boost::asio::thread_pool pool(2);
    const Normalisers normalisers{3, 3.0 * config.denoising.groups};
    result = train_head(head, input, {scene_targets()}, normalisers, options, pool);
    result.total.backward();
    last_cost =
        matching_cost(result.predictions.class_logits[-1], result.predictions.boxes[-1],
                      make_matching_targets({scene_targets()}, head.code_weights().options()),
                      config.matcher, head.code_weights())[0];
  }

  [[nodiscard]] at::Tensor gradient(std::string_view name) const {
    for (const Parameter& parameter : set.parameters()) {
      if (parameter.name == fmt::format("pts_bbox_head.{}", name)) return parameter.tensor.grad();
    }
    return {};
  }

  [[nodiscard]] double gradient_norm() const {
    double sum = 0;
    for (const Parameter& parameter : set.parameters()) {
      if (!parameter.is_trainable) continue;
      sum += parameter.tensor.grad().square().sum().item<double>();
    }
    return std::sqrt(sum);
  }
};

double term(const TrainResult& result, std::string_view name) {
  for (const auto& [known, value] : result.terms) {
    if (known == name) return value.item<double>();
  }
  return kUnknown;
}

void check_stages(GoldenList& list, const HeadRun& run) {
  const std::vector<GoldenTensor> stages{
      {"projection", 79.3085596, 156.416004, {-.538710302, 1.40863629, .308404339}, -.0294128648},
      {"coords", 30081.1756, 148.657607, {.492572787, .512254902, .51530303}, -.414207459},
      {"log_odds", 24467.7673, 853.370849, {-.0297110387, .0490294272, .0612312451}, -11.5129255},
      {"pe3d", 6985.8714, 677.493204, {-1.6377432, 7.5881154, 1.07388537}, 2.23078289},
      {"gate", 37297.8562, 139.894083, {.636088624, .468932261, .593357978}, .510992238},
      {"sine", 54147.1119, 235.151015, {.499999962, .438040555, .382632226}, .999999737},
      {"pos", 1059.70227, 377.67107, {-.360445803, 3.77912438, 1.05290984}, .839993065},
      {"query", 177.261095, 37.425284, {.465489095, .214769232, -.34942812}, .137255035},
      {"decoder.0", -1.03092131, 71.5706073, {-.252803149, 1.25347166, 1.18021125}, -1.25381037},
      {"decoder.5", -.578358113, 71.5817968, {.220936888, -.0133692252, -.163559462}, 1.13229037},
      {"raw.5", 18.9820978, 4.13768036, {-.0856217612, -.0116266356, .00380603651}, .325189776}};
  for (const GoldenTensor& golden : stages) list.add(golden, run.stages.at(golden.name));
  list.add(
      {"class logits", -202.968168, 26.7607277, {.135021394, -1.47244931, .966322274}, .142874814},
      run.result.predictions.class_logits);
  list.add({"boxes", 1118.12544, 419.979013, {20.397933, 30.1560299, -.14860689}, .650379552},
           run.result.predictions.boxes);
  const std::vector<double> logits{-.0799387613, 1.30492986, -.0580948647, 1.0789039,
                                   .653534627,   .122380398, .283482439,   -.197449396,
                                   -.0903229781, .132580726};
  const std::vector<double> box{16.8554882,   29.7572691, .00380603651, .330269626, -4.05373114,
                                -.0416618794, .495675357, .231564552,   .462144149, .630251625};
  for (std::int64_t i = 0; i < kCodeSize; ++i) {
    list.add(fmt::format("class.5 query 0 [{}]", i),
             run.result.predictions.class_logits[5][0][0][i].item<double>(), logits[i]);
    list.add(fmt::format("box.5 query 0 [{}]", i),
             run.result.predictions.boxes[5][0][0][i].item<double>(), box[i]);
  }
}

void check_losses(GoldenList& list, const HeadRun& run) {
  const std::vector<std::tuple<Assignment, double, double>> layers{
      {{{8, 2}, {10, 1}, {15, 0}}, 18.5657052, 6.38578892},
      {{{8, 2}, {10, 1}, {15, 0}}, 16.4443948, 6.10927361},
      {{{2, 2}, {4, 0}, {9, 1}}, 25.0113179, 4.20952458},
      {{{2, 2}, {9, 1}, {15, 0}}, 20.3658408, 5.05648923},
      {{{6, 2}, {8, 1}, {19, 0}}, 16.5951232, 6.80276644},
      {{{9, 1}, {15, 0}, {19, 2}}, 34.2606597, 5.80279856}};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const auto& [pairs, class_loss, box_loss] = layers[layer];
    const std::string suffix = layer == 5 ? "last" : fmt::format("d{}", layer);
    list.add(fmt::format("assignment {} as expected", suffix),
             run.result.assignments[layer][0] == pairs, 1, 0);
    list.add("loss_cls." + suffix, term(run.result, "loss_cls." + suffix), class_loss);
    list.add("loss_box." + suffix, term(run.result, "loss_box." + suffix), box_loss);
  }
  const std::vector<double> costs{5.996873444, 3.362077341, 4.406687983};
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto& [query, box] = run.result.assignments[5][0][i];
    list.add(fmt::format("cost of pair {}, layer 5", i), run.last_cost[query][box].item<double>(),
             costs[i]);
  }
}

void check_gradients(GoldenList& list, const HeadRun& run) {
  const std::string layers = "transformer.decoder.layers.";
  const std::vector<GoldenTensor> gradients{
      {"input_proj.weight", 19.1725173, 59.3499762, {}},
      {"position_encoder.0.weight", 66.3427208, 43.9155039, {}},
      {"fpe.conv_reduce.weight", 2.48428303, 14.1546007, {}},
      {"fpe.conv_expand.weight", -54.5886772, 12.9833881, {}},
      {"adapt_pos3d.0.weight", 99.4446258, 13.4728469, {}},
      {"reference_points.weight", 69.0716716, 69.2141891, {}},
      {"query_embedding.0.weight", -29.4553876, 24.5366985, {}},
      {layers + "0.attentions.1.attn.in_proj_weight", -21.6367634, 45.1466839, {}},
      {layers + "5.attentions.1.attn.in_proj_weight", -28.3340433, 31.8289333, {}},
      {layers + "5.ffns.0.layers.1.weight", kUnknown, 352.723251, {}},
      {"transformer.decoder.post_norm.weight", 3.68402601, 21.2328722, {}},
      {"cls_branches.0.0.weight", kUnknown, 139.84696, {}},
      {"cls_branches.5.6.bias", 43.8096895, 15.5689692, {}},
      {"reg_branches.5.task_heads.4.2.weight", kUnknown, 1.2167506, {}}};
  for (const GoldenTensor& golden : gradients) {
    GoldenTensor named = golden;
    named.name = "gradient of " + golden.name;
    list.add(named, run.gradient(golden.name));
  }
  list.add_zero("gradient of layer 0's self-attention (q, k, v)",
                run.gradient(layers + "0.attentions.0.attn.in_proj_weight").norm().item<double>(),
                1e-12);
  list.add("gradient of the feature L2", run.feature.grad().norm().item<double>(), 5.874697337);
  list.add("global gradient norm", run.gradient_norm(), 2398.821905);
}

struct StageSum {
  std::string name;
  double sum, l2;
  std::vector<double> first;
};

struct BackboneCase {
  std::string group;
  BackboneConfig config;
  int last_number;
  std::vector<StageSum> stages;
};

std::vector<BackboneCase> backbone_cases() {
  const std::vector<double> r50_stem{.388463162, .546687259, .171828746};
  const std::vector<double> r50_layer1{2.41570697, 2.90581701, 3.48412471};
  return {{"VoVNetV2-99",
           {BackboneKind::kVovNet, 99, ResNetStyle::kPytorch, 64, true, false},
           5526,
           {{"stem", 17206.6524, 134.239764, {0, 0, 0}},
            {"stage2", 16618.1191, 95.6766943, {.113996896, .141721773, .110508023}},
            {"stage3", 12469.6611, 76.8600621, {.265317165, .564668945, .418840533}},
            {"stage4", 17964.4375, 152.679855, {.898783425, 1.42461312, 1.48720705}},
            {"stage5", 3543.42521, 63.0916205, {.712741773, .928249123, .962274813}},
            {"P4", -67.61639, 188.655598, {3.06715431, 5.68655658, 6.49443609}},
            {"P5", 42.335761, 44.8601446, {.55453875, -.0120180478, .237464893}}}},
          {"ResNet-50 pytorch",
           {BackboneKind::kResNet, 50, ResNetStyle::kPytorch, 64, false, false},
           5264,
           {{"stem", 28546.7939, 198.706448, r50_stem},
            {"layer1", 160258.541, 792.705098, r50_layer1},
            {"layer2", 390036.109, 2632.09036, {6.32582889}},
            {"layer3", 1696552.29, 16605.285, {30.8279711}},
            {"layer4", 2115434.25, 29233.4503, {82.4779815}},
            {"P4", 167717.81, 41452.986, {320.592688, 842.697731, 896.087062}},
            {"P5", 47409.0139, 14976.6473, {460.689655}}}},
          {"ResNet-50 caffe",
           {BackboneKind::kResNet, 50, ResNetStyle::kCaffe, 64, false, false},
           5264,
           {{"stem", 28546.7939, 198.706448, r50_stem},
            {"layer1", 160258.541, 792.705098, r50_layer1},
            {"layer2", 379890.858, 2570.68107, {7.52142584}},
            {"layer3", 1608552.55, 15750.3701, {24.9324308}},
            {"layer4", 1831372.05, 25231.8249, {56.5696117}},
            {"P4", 177819.787, 36096.8621, {161.878295, 630.628063, 830.84075}},
            {"P5", 44351.75, 12941.2658, {431.269545}}}}};
}

GoldenChecks check_backbone(const BackboneCase& expected) {
  const at::NoGradGuard no_grad;
  ParameterSet set(at::kCPU, at::kDouble);
  const auto backbone = expected.config.kind == BackboneKind::kVovNet
                            ? make_vovnet(expected.config, set)
                            : make_resnet(expected.config, set);
  const Neck neck(set, backbone->c4_channels(), backbone->c5_channels(), 256);
  GoldenList list(expected.group);
  list.add("last number of the backbone", fill_tensors(set), expected.last_number, 0);
  std::map<std::string, at::Tensor, std::less<>> stages;
  const BackboneObserver observer = [&stages](std::string_view stage, const at::Tensor& value) {
    stages[std::string(stage)] = value;
  };
  const at::Tensor image = filled(kImageNumber, {1, 3, 64, 96});
  (void)neck.forward(backbone->forward(image, observer), observer);
  for (const StageSum& stage : expected.stages) {
    list.add(GoldenTensor{stage.name, stage.sum, stage.l2, stage.first}, stages.at(stage.name));
  }
  return list.take();
}

}  // namespace

GoldenChecks check_head() {
  GoldenList list("head");
  const HeadRun run(golden_config());
  check_stages(list, run);
  check_losses(list, run);
  list.add("total loss", run.result.total.item<double>(), 165.6096828);
  check_gradients(list, run);
  return list.take();
}

GoldenChecks check_denoising_head() {
  GoldenList list("denoising");
  ModelConfig config = golden_config();
  config.denoising.groups = 2;
  const DenoisingQueries queries =
      make_denoising_queries({scene_targets()}, scene_noise(6), config, at::dtype(at::kDouble));
  list.add({"anchors", 9.96600649, 2.41736416, {}}, queries.anchors);
  const std::vector<std::int64_t> labels{0, 10, 10, 0, 8, 10};
  list.add("labels as expected", queries.labels.equal(at::tensor(labels, at::kLong)), 1, 0);
  const HeadRun run(config);
  check_losses(list, run);
  const std::vector<std::pair<double, double>> expected{
      {11.9985688, 2.53462456}, {12.2324074, 4.00885149}, {17.0646925, 8.22634667},
      {12.4400504, 5.2854334},  {12.129986, 9.01621882},  {23.3052736, 2.42577126}};
  for (std::size_t layer = 0; layer < expected.size(); ++layer) {
    const std::string suffix = layer == 5 ? "last" : fmt::format("d{}", layer);
    list.add("dn_loss_cls." + suffix, term(run.result, "dn_loss_cls." + suffix),
             expected[layer].first);
    list.add("dn_loss_box." + suffix, term(run.result, "dn_loss_box." + suffix),
             expected[layer].second);
  }
  list.add("total loss", run.result.total.item<double>(), 286.2779077);
  list.add("global gradient norm", run.gradient_norm(), 3936.651532);
  return list.take();
}

GoldenChecks check_backbones() {
  GoldenChecks all;
  for (const BackboneCase& expected : backbone_cases()) {
    const GoldenChecks checks = check_backbone(expected);
    all.insert(all.end(), checks.begin(), checks.end());
  }
  return all;
}

GoldenChecks check_all() {
  GoldenChecks all;
  for (const auto& part : {check_small_cases, check_parameter_counts, check_head,
                           check_denoising_head, check_backbones}) {
    const GoldenChecks checks = part();
    all.insert(all.end(), checks.begin(), checks.end());
  }
  return all;
}

bool GoldenCheck::is_good() const { return std::abs(got - expected) <= tolerance; }

}  // namespace hvd::petrv2
