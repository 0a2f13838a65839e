#include "hvdrun/sync_options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace hvd {
namespace {

Result<SyncOptions> options_with(const char* threshold) {
  if (threshold == nullptr) {
    unsetenv("HOROVOD_FUSION_THRESHOLD");
  } else {
    setenv("HOROVOD_FUSION_THRESHOLD", threshold, 1);
  }
  auto options = sync_options_from_environment();
  unsetenv("HOROVOD_FUSION_THRESHOLD");
  return options;
}

TEST(SyncOptions, HorovodsFusionThresholdIsTheSizeOfABucket) {
  EXPECT_EQ(options_with(nullptr)->bucket_bytes, 25U << 20U);
  EXPECT_EQ(options_with(nullptr)->first_bucket_bytes, 1U << 20U);
  EXPECT_EQ(options_with("67108864")->bucket_bytes, 64U << 20U);
  EXPECT_EQ(options_with("67108864")->first_bucket_bytes, 1U << 20U);
  EXPECT_EQ(options_with("4096")->first_bucket_bytes, 4096U);
  EXPECT_EQ(options_with("0")->bucket_bytes, 0U);
}

TEST(SyncOptions, AThresholdThatIsNoNumberIsRefused) {
  for (const char* text : {"", "many", "1 MiB", "-1", "99999999999999999999999"}) {
    const auto options = options_with(text);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().code, ExitCode::kUsage);
    EXPECT_EQ(options.error().message,
              "HOROVOD_FUSION_THRESHOLD=\"" + std::string(text) +
                  "\": give a number of bytes, or 0 for a bucket for each tensor");
  }
}

}  // namespace
}  // namespace hvd
