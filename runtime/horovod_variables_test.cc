#include "runtime/horovod_variables.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::HasSubstr;

Place rank_3() {
  Place place;
  place.rank = 3;
  place.size = 4;
  place.host = "node2";
  return place;
}

TEST(HorovodVariables, ReadsTheLogLevel) {
  const std::vector<std::pair<const char*, LogLevel>> table = {
      {"trace", LogLevel::kDebug},     {"DEBUG", LogLevel::kDebug}, {"info", LogLevel::kInfo},
      {"Warning", LogLevel::kWarning}, {"error", LogLevel::kError}, {"fatal", LogLevel::kError}};
  for (const auto& [name, level] : table) {
    EXPECT_EQ(horovod_log_level({{"HOROVOD_LOG_LEVEL", name}}).value(), level) << name;
  }
  EXPECT_EQ(horovod_log_level({}).value(), std::nullopt);
  EXPECT_EQ(horovod_log_level({{"HOROVOD_LOG_LEVEL", ""}}).value(), std::nullopt);
  const auto refused = horovod_log_level({{"HOROVOD_LOG_LEVEL", "loud"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("HOROVOD_LOG_LEVEL=loud"));
}

TEST(HorovodVariables, ADumpLiesBesideTheTimeline) {
  const Place place = rank_3();
  EXPECT_EQ(dump_path({}, place), "");
  EXPECT_EQ(dump_path({{"HOROVOD_TIMELINE", "DYNAMIC"}}, place), "");
  EXPECT_EQ(dump_path({{"HOROVOD_TIMELINE", "/t/a.json"}}, place), "/t/rank3.flight.json");
  EXPECT_EQ(dump_path({{"HOROVOD_TIMELINE", "a.json"}}, place), "./rank3.flight.json");
  EXPECT_EQ(dump_path({{"HVDRUN_TIMELINE", "/job"}}, place), "/job/rank3.flight.json");
  EXPECT_EQ(dump_path({{"HVDRUN_TIMELINE", "/job"}, {"HVDRUN_DUMP_DIR", "/d"}}, place),
            "/d/rank3.flight.json");
}

}  // namespace
}  // namespace hvd
