#include "training/petrv2/config.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hvd::petrv2 {
namespace {

constexpr std::string_view kMinimal = R"(model:
  backbone: {kind: resnet, depth: 50}
  image: {height: 256, width: 704, mean: [1, 2, 3], std: [1, 1, 1]}
train: {lr: 1.0e-4}
)";

std::string with(std::string_view from, std::string_view to) {
  std::string text(kMinimal);
  return text.replace(text.find(from), from.size(), to);
}

std::string error_of(const std::string& yaml) {
  const auto config = parse_config(yaml, "dir/x.yaml");
  return config ? "no error" : config.error().message;
}

TEST(Config, EveryBuiltinLoads) {
  const auto names = builtin_config_names();
  EXPECT_EQ(names.size(), 10u);
  for (const std::string& name : names) {
    const auto config = load_config(name);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->name, name);
  }
}

TEST(Config, FlashVariantsDifferInTheirFields) {
  const auto config = load_config("petrv2_r50_gridmask_p4_704x256_dn_flash_nuim");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->model.has_sine);
  EXPECT_EQ(config->model.queries, 1500);
  EXPECT_EQ(config->model.cross_attention_dropout, 0);
  EXPECT_EQ(config->model.dropout, 0.1);
  EXPECT_EQ(config->model.matcher, MatcherKind::kWeighted);
  EXPECT_EQ(config->model.code_weights[1], 2);
  EXPECT_EQ(config->model.denoising.groups, 10);
  EXPECT_EQ(config->train.lr, 4e-4);
  EXPECT_EQ(config->train.reference_batch, 16);
}

TEST(Config, VovNetReadsBlueFirstAndTrainsItsNorms) {
  const auto config = load_config("petrv2_vovnet_gridmask_p4_800x320");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->model.image.is_bgr);
  EXPECT_EQ(config->model.image.mean[0], 103.53);
  EXPECT_TRUE(config->model.backbone.has_trainable_norm);
  EXPECT_EQ(config->model.feature_height(), 20);
  EXPECT_EQ(config->model.feature_width(), 50);
}

TEST(Config, ErrorsNameFileAndLine) {
  EXPECT_EQ(error_of(std::string(kMinimal)), "no error");
  EXPECT_EQ(error_of(with("depth: 50}", "depht: 50}")),
            "dir/x.yaml:2: \"depht\" is not a key of \"backbone\"");
  EXPECT_EQ(error_of(with("depth: 50}", "depth: 34}")),
            "dir/x.yaml:2: depth: \"34\" is none of 18, 50, 101");
  EXPECT_EQ(error_of(with("width: 704", "width: 700")),
            "dir/x.yaml:3: height and width of the image are multiples of 32");
  EXPECT_EQ(error_of(with("1.0e-4", "fast")), "dir/x.yaml:4: lr: the value has the wrong type");
  EXPECT_EQ(error_of(with("1.0e-4", "-1")), "dir/x.yaml:4: lr: -1 is not within 0 and 10");
  EXPECT_EQ(error_of(with("model:\n", "models:\n")),
            "dir/x.yaml:1: \"configuration\" lacks the key \"model\"");
  EXPECT_EQ(error_of(with("train: {lr: 1.0e-4}", "train: {lr: 1.0e-4")).substr(0, 11),
            "dir/x.yaml:");
}

TEST(Config, UnknownNamesListTheKnownOnes) {
  const auto config = load_config("petrv3");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ExitCode::kUsage);
  EXPECT_NE(config.error().message.find("petrv2_r50_p4_256x704"), std::string::npos);
  const auto missing = load_config("./no/such.yaml");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("./no/such.yaml"), std::string::npos);
}

}  // namespace
}  // namespace hvd::petrv2
