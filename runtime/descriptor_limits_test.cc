#include "runtime/descriptor_limits.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "base/process_needs.h"
#include "runtime/tcp_socket.h"

namespace hvd {
namespace {

using testing::HasSubstr;

// The process's own limit, back again at the end.
class DescriptorLimitsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }
  void set_soft(rlim_t soft) const {
    const rlimit low{soft, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  rlimit before_{};
};

TEST_F(DescriptorLimitsTest, TheSoftOneIsLiftedToTheHardOne) {
  set_soft(64);
  EXPECT_EQ(lift_descriptor_limit(), 64);
  const DescriptorLimits lifted = descriptor_limits();
  EXPECT_EQ(lifted.soft, before_.rlim_max);
  EXPECT_EQ(lifted.hard, before_.rlim_max);
}

TEST_F(DescriptorLimitsTest, ASocketTooManyIsToldWithBothLimits) {
  EXPECT_THAT(describe({1024, 4096}), HasSubstr("1024 open files (hard limit 4096)"));
  set_soft(3);
  const auto listening = listen_on("127.0.0.1");
  const auto dialled = start_dial({"127.0.0.1", 9});
  const auto local = listen_on_local("hvd-of-a-test");
  set_soft(before_.rlim_cur);
  const std::string both =
      fmt::format("Too many open files: this process may have at most 3 open files (hard limit {})",
                  before_.rlim_max);
  ASSERT_FALSE(listening);
  EXPECT_THAT(listening.error().message, HasSubstr(both));
  ASSERT_FALSE(dialled);
  EXPECT_THAT(dialled.error().message, HasSubstr(both));
  ASSERT_FALSE(local);
  EXPECT_THAT(local.error().message, HasSubstr(both));
}

TEST_F(DescriptorLimitsTest, OnlyAShortageIsOne) {
  EXPECT_TRUE(is_descriptor_shortage(EMFILE));
  EXPECT_FALSE(is_descriptor_shortage(EAGAIN));
  EXPECT_THAT(describe_descriptor_error(EACCES), "Permission denied");
}

}  // namespace
}  // namespace hvd
