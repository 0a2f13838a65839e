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

TEST(HorovodVariables, TheTimeOfAnAbortIsANumberOrRefused) {
  using std::chrono::milliseconds;
  const auto of = [](const char* text) {
    return abort_timeout({{"HVDRUN_ABORT_TIMEOUT_MS", text}});
  };
  EXPECT_EQ(abort_timeout({}).value(), milliseconds(10'000));
  EXPECT_EQ(of("").value(), milliseconds(10'000));
  EXPECT_EQ(of("1").value(), milliseconds(1));
  for (const char* text : {"0", "-5", "soon", "10s", " 5", "99999999999999999999", "86400001"}) {
    const auto refused = of(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ExitCode::kUsage);
    EXPECT_THAT(refused.error().message,
                HasSubstr(fmt::format("HVDRUN_ABORT_TIMEOUT_MS={} is no number", text)));
  }
}

TEST(HorovodVariables, WhatHasNoEffectIsToldInOneSentence) {
  EXPECT_EQ(variables_without_effect({{"HOROVOD_AUTOTUNE", "0"}, {"HOROVOD_CYCLE_TIME", ""}}),
            std::nullopt);
  EXPECT_THAT(variables_without_effect({{"HOROVOD_CYCLE_TIME", "5"}}).value_or(""),
              HasSubstr("HOROVOD_CYCLE_TIME=5 has no effect here: "));
  EXPECT_THAT(variables_without_effect({{"HOROVOD_AUTOTUNE", "1"}, {"HOROVOD_CACHE_CAPACITY", "8"}})
                  .value_or(""),
              HasSubstr("HOROVOD_CACHE_CAPACITY=8, HOROVOD_AUTOTUNE=1 have no effect here: "));
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
