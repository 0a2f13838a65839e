#include "runtime/timeline_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hvd {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<std::optional<TimelineOptions>> options_of(const Variables& variables) {
  return timeline_from_environment(
      3, "node2", [&variables](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
}

TEST(TimelineEnvironment, IsOffUnlessAskedFor) {
  for (const Variables& variables : {Variables{},
                                     {{"HVDRUN_TIMELINE", ""}},
                                     {{"HOROVOD_TIMELINE", "DYNAMIC"}},
                                     {{"HVDRUN_TIMELINE_STEPS", "1-2"}}}) {
    const auto options = options_of(variables);
    ASSERT_TRUE(options);
    EXPECT_FALSE(options->has_value());
  }
}

TEST(TimelineEnvironment, NamesOneFileForEachRank) {
  const auto by_hvdrun =
      options_of({{"HVDRUN_TIMELINE", "/jobs/t"}, {"HOROVOD_TIMELINE", "/home/t.json"}});
  ASSERT_TRUE(by_hvdrun && by_hvdrun->has_value());
  EXPECT_EQ((*by_hvdrun)->path, "/jobs/t/rank3.json");
  EXPECT_EQ((*by_hvdrun)->rank, 3);
  EXPECT_EQ((*by_hvdrun)->host, "node2");
  EXPECT_FALSE((*by_hvdrun)->marks_steps);
  const auto by_user = options_of({{"HOROVOD_TIMELINE", "/home/t.json"}});
  ASSERT_TRUE(by_user && by_user->has_value());
  EXPECT_EQ((*by_user)->path, "/home/t.json.rank3.json");
}

TEST(TimelineEnvironment, TakesWindowBoundAndMarks) {
  const auto options = options_of({{"HVDRUN_TIMELINE", "/t"},
                                   {"HVDRUN_TIMELINE_STEPS", "100-199"},
                                   {"HVDRUN_TIMELINE_MAX_BYTES", "1048576"},
                                   {"HOROVOD_TIMELINE_MARK_CYCLES", "1"}});
  ASSERT_TRUE(options && options->has_value());
  EXPECT_EQ((*options)->first_step, 100U);
  EXPECT_EQ((*options)->last_step, 199U);
  EXPECT_EQ((*options)->max_bytes, 1048576U);
  EXPECT_TRUE((*options)->marks_steps);
  const auto one = options_of({{"HVDRUN_TIMELINE", "/t"},
                               {"HVDRUN_TIMELINE_STEPS", "7"},
                               {"HOROVOD_TIMELINE_MARK_CYCLES", "0"}});
  ASSERT_TRUE(one && one->has_value());
  EXPECT_EQ((*one)->first_step, 7U);
  EXPECT_EQ((*one)->last_step, 7U);
  EXPECT_FALSE((*one)->marks_steps);
}

TEST(TimelineEnvironment, AFolderOrADeviceIsNoTimeline) {
  for (const auto& [path, why] :
       Variables{{"/tmp", "a folder"}, {"/none/such/", "a folder"}, {"/dev/null", "no file"}}) {
    const auto options = options_of({{"HOROVOD_TIMELINE", path}});
    ASSERT_FALSE(options);
    EXPECT_THAT(options.error().message, HasSubstr("HOROVOD_TIMELINE=" + path + ": it is " + why));
  }
}

TEST(TimelineEnvironment, NamesTheVariableThatMakesNoSense) {
  for (const auto& [name, value] :
       Variables{{"HVDRUN_TIMELINE_STEPS", "9-3"}, {"HVDRUN_TIMELINE_MAX_BYTES", "10MB"}}) {
    const auto options = options_of({{"HVDRUN_TIMELINE", "/t"}, {name, value}});
    ASSERT_FALSE(options);
    EXPECT_THAT(options.error().message, HasSubstr(name + " is \"" + value + "\""));
  }
}

}  // namespace
}  // namespace hvd
