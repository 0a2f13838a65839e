#include "launcher/gpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/gpu_list.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string brief(const Result<std::vector<std::string>>& gpus) {
  return gpus ? format_gpus(*gpus) : "error: " + gpus.error().message;
}

TEST(GpuChoice, VisibleDevicesEndAtTheFirstThatIsNone) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"3,1", "3,1"},     {"GPU-8a,GPU-9b", "GPU-8a,GPU-9b"},
      {"MIG-1", "MIG-1"}, {"", ""},
      {"0,-1,1", "0"},    {" 0 , 1 ", "0,1"},
      {"none", ""},       {"NoDevFiles", ""},
  };
  for (const auto& [value, devices] : cases) EXPECT_EQ(brief(visible_devices(value)), devices);
  EXPECT_THAT(brief(visible_devices("1,1")), HasSubstr("lists 1 twice"));
}

TEST(GpuChoice, OneEachTakesTheSelectionThenTheVariableThenTheNodes) {
  const HostSpec plain{.name = "node1"};
  const HostSpec selected{.name = "node1", .gpus = {"5", "7"}};
  EXPECT_EQ(brief(one_gpu_each(selected, {8, "0,1"}, 2)), "5,7");
  EXPECT_EQ(brief(one_gpu_each(plain, {8, "3,1"}, 2)), "3,1");
  EXPECT_EQ(brief(one_gpu_each(plain, {2, std::nullopt}, 2)), "0,1");
}

TEST(GpuChoice, TooFewForTheRanksNamesTheHostAndWhatItHas) {
  const HostSpec plain{.name = "node1"};
  const HostSpec selected{.name = "node2", .gpus = {"5"}};
  const auto none = one_gpu_each(plain, {0, std::nullopt}, 1);
  EXPECT_THAT(brief(none),
              HasSubstr("node1: --one-gpu-per-rank needs a GPU for each of its 1 rank, "
                        "but it has 0 GPUs"));
  EXPECT_EQ(none.error().code, ExitCode::kUsage);
  EXPECT_THAT(brief(one_gpu_each(plain, {8, ""}, 2)), HasSubstr("but CUDA_VISIBLE_DEVICES=\"\""));
  EXPECT_THAT(brief(one_gpu_each(selected, {8, ""}, 2)), HasSubstr("the host list selects 5"));
}

TEST(GpuChoice, SelectedNumbersMustBeThere) {
  const HostSpec host{.name = "node1", .gpus = {"GPU-8a", "7", "8"}};
  EXPECT_TRUE(check_selection(host, {9, std::nullopt}));
  EXPECT_TRUE(check_selection(host, {0, std::nullopt}));
  const auto wrong = check_selection(host, {8, std::nullopt});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("node1: the host list selects GPU 8, but it has 8"));
}

TEST(GpuChoice, WhatTheRanksInheritHasEachOnce) {
  const auto wrong = check_selection({.name = "node1"}, {0, "1,1"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ExitCode::kUsage);
  EXPECT_THAT(wrong.error().message,
              HasSubstr("node1: CUDA_VISIBLE_DEVICES=\"1,1\" lists 1 twice"));
  EXPECT_TRUE(check_selection({.name = "node1", .gpus = {"0"}}, {8, "1,1"}));
}

TEST(GpuChoice, VariablesOfASelectionAndOfOneGpu) {
  EXPECT_THAT(selected_gpus_env({.name = "a", .gpus = {"0", "2"}}),
              ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "0,2")));
  EXPECT_THAT(selected_gpus_env({.name = "a"}), IsEmpty());
  EXPECT_THAT(one_gpu_env("MIG-1"),
              ElementsAre(Pair("CUDA_VISIBLE_DEVICES", "MIG-1"), Pair("LOCAL_RANK", "0")));
}

}  // namespace
}  // namespace hvd
