#include "agent/gpu_claim.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(GpuClaim, IsWhatItsTextSays) {
  for (const char* text : {"all", "none", "0", "0,3,7"}) {
    const auto claim = parse_gpu_claim(text);
    ASSERT_TRUE(claim) << text;
    EXPECT_EQ(to_text(*claim), text);
  }
  EXPECT_EQ(to_text(*parse_gpu_claim("3,1,3")), "1,3");
  for (const char* text :
       {"", ",", "0,", "-1", "0 1", "GPU-1", "ALL", "1024", "99999999999", "0,,1"}) {
    EXPECT_FALSE(parse_gpu_claim(text)) << text;
  }
}

TEST(GpuClaim, CollidesWhereBothWantOneGpu) {
  const auto is_collision = [](const char* a, const char* b) {
    const bool there = collide(*parse_gpu_claim(a), *parse_gpu_claim(b));
    EXPECT_EQ(there, collide(*parse_gpu_claim(b), *parse_gpu_claim(a)));
    return there;
  };
  EXPECT_TRUE(is_collision("0,1", "1,2"));
  EXPECT_FALSE(is_collision("0,1", "2,3"));
  EXPECT_TRUE(is_collision("all", "3"));
  EXPECT_TRUE(is_collision("all", "all"));
  EXPECT_FALSE(is_collision("all", "none"));
  EXPECT_FALSE(is_collision("none", "none"));
}

}  // namespace
}  // namespace hvd
