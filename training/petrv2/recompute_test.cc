#include "training/petrv2/recompute.h"

#include <gtest/gtest.h>

namespace hvd::petrv2 {
namespace {

constexpr std::uint64_t kGib = 1 << 30;
constexpr std::uint64_t kSample = 12 * 256 * 704;

std::string settled(Recompute wish, const MemoryNeed& need) {
  ModelConfig model;
  model.has_decoder_checkpoints = false;  // else like neither answer
  settle_recompute(model, wish, need);
  return recompute_text(model);
}

TEST(Recompute, AWishIsFulfilledWhateverTheMemory) {
  EXPECT_EQ(settled(Recompute::kYes, {kSample, true, 1000 * kGib}), "computed again");
  EXPECT_EQ(settled(Recompute::kNo, {100 * kSample, false, kGib}), "kept");
}

TEST(Recompute, AutoKeepsAllWhereThereIsTwiceTheMemory) {
  EXPECT_EQ(settled(Recompute::kAuto, {4 * kSample, true, 80 * kGib}), "kept");
  EXPECT_EQ(settled(Recompute::kAuto, {4 * kSample, false, 80 * kGib}), "kept");
  const char* const as_configured = "of the backbone computed again";
  EXPECT_EQ(settled(Recompute::kAuto, {4 * kSample, false, 40 * kGib}), as_configured);
  EXPECT_EQ(settled(Recompute::kAuto, {kSample, true, 8 * kGib}), as_configured);
  EXPECT_EQ(settled(Recompute::kAuto, {kSample, true, 0}), as_configured) << "a CPU";
}

}  // namespace
}  // namespace hvd::petrv2
