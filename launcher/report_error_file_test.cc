#include "launcher/report_error_file.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ErrorFile, HasATracebackOrAMessage) {
  EXPECT_EQ(traceback_in(R"({"message": "plain"})"), "plain");
  EXPECT_EQ(traceback_in(R"({"message": {"message": "only", "extraInfo": {}}})"), "only");
  EXPECT_THAT(
      traceback_lines(
          R"({"message": {"message": "m", "extraInfo": {"py_callstack": "Traceback:\n  a\nE: b\n"}}})"),
      ElementsAre("Traceback:", "  a", "E: b"));
}

TEST(ErrorFile, BlankLinesDoNotHideItsText) {
  std::string blank;
  for (int i = 0; i < 5000; ++i) blank += i % 2 == 0 ? "\\n" : " \\t\\r\\n";
  EXPECT_THAT(traceback_lines(R"({"message": ")" + blank + "Traceback:\\n\\n  a\\n" + blank +
                              "E: b\\n" + blank + R"("})"),
              ElementsAre("Traceback:", "", "  a", "", "E: b"));
  EXPECT_THAT(traceback_lines(R"({"message": ")" + blank + R"("})"), IsEmpty());
}

TEST(ErrorFile, OfAnythingElseTellsNothing) {
  for (const char* text : {"", "{", "[]", "7", "null", "{}", R"({"message": 7})",
                           R"({"message": {}})", R"({"message": {"extraInfo": "x"}})",
                           R"({"message": {"extraInfo": {"py_callstack": 3, "signal": "x"}}})",
                           R"({"message": {"extraInfo": [1]}})", "\xff\xfe"}) {
    EXPECT_THAT(traceback_lines(text), IsEmpty()) << text;
    EXPECT_EQ(received_signal_in(text), 0) << text;
  }
}

TEST(ErrorFile, NamesTheSignalThatEndedAWorkerThatSavedFirst) {
  EXPECT_EQ(received_signal_in(R"({"message": {"message": "m", "extraInfo": {"signal": 15}}})"),
            15);
  for (const char* text : {R"({"message": {"extraInfo": {"signal": 99}}})",
                           R"({"message": {"extraInfo": {"signal": -1}}})",
                           R"({"message": {"extraInfo": {"signal": 1e99}}})"}) {
    EXPECT_EQ(received_signal_in(text), 0) << text;
  }
}

}  // namespace
}  // namespace hvd
