#include "launcher/signal_options.h"

#include <gmock/gmock.h>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SignalRequest request_of(const std::vector<std::string>& words) {
  const auto options = parse(words);
  EXPECT_TRUE(options) << options.error().message;
  return options ? options->signals : SignalRequest{};
}

TEST(SignalOptions, NamesAndNumbersAreSignals) {
  for (const char* text : {"TERM", "SIGTERM", "sigterm", "term", "15"}) {
    EXPECT_EQ(parse_signal(text), SIGTERM) << text;
  }
  EXPECT_EQ(parse_signal("RTMIN+2"), SIGRTMIN + 2);
  EXPECT_EQ(parse_signal("SIGRTMAX-1"), SIGRTMAX - 1);
  EXPECT_EQ(parse_signal(std::to_string(SIGRTMIN)), SIGRTMIN);
  for (const char* text : {"", "SIG", "0", "-1", "32", "33", "65", "NOPE", "USR1 ", "RTMIN-1",
                           "RTMIN+99", "RTMAX+1", "9999999999"}) {
    EXPECT_EQ(parse_signal(text), std::nullopt) << text;
  }
}

TEST(SignalOptions, DefaultsAreTermAndTheUserSignals) {
  const SignalRequest request = request_of({});
  EXPECT_EQ(request.stop_signal, SIGTERM);
  EXPECT_THAT(request.forwarded, ElementsAre(SIGUSR1, SIGUSR2));
  EXPECT_FALSE(request.timeout_signal);
  EXPECT_FALSE(request.passes_input);
}

TEST(SignalOptions, TakeWhatIsGiven) {
  EXPECT_EQ(request_of({"--stop-signal", "INT"}).stop_signal, SIGINT);
  EXPECT_THAT(request_of({"--forward-signals", "USR1,WINCH,34"}).forwarded,
              ElementsAre(SIGUSR1, SIGWINCH, 34));
  EXPECT_THAT(request_of({"--forward-signals", "none"}).forwarded, IsEmpty());
  EXPECT_TRUE(request_of({"--stdin"}).passes_input);
  const SignalRequest limited = request_of({"--timeout", "2m", "--timeout-signal", "USR1@60"});
  ASSERT_TRUE(limited.timeout_signal);
  EXPECT_EQ(limited.timeout_signal->signal, SIGUSR1);
  EXPECT_EQ(limited.timeout_signal->before, seconds(60));
}

TEST(SignalOptions, RefuseWhatCannotWorkAndSayWhatCan) {
  EXPECT_THAT(error_of({"--stop-signal", "KILL"}), HasSubstr("--grace 0"));
  EXPECT_THAT(error_of({"--stop-signal", "19"}), HasSubstr("no process can answer"));
  EXPECT_THAT(error_of({"--stop-signal", "SIGFOO"}), HasSubstr("no such signal"));
  EXPECT_THAT(error_of({"--timeout", "9", "--timeout-signal", "KILL@5"}),
              HasSubstr("no process can answer"));
  EXPECT_THAT(error_of({"--timeout-signal", "USR1@5"}), HasSubstr("give --timeout TIME"));
  EXPECT_THAT(error_of({"--timeout", "5", "--timeout-signal", "USR1@5"}),
              HasSubstr("before the start"));
  EXPECT_THAT(error_of({"--timeout", "5", "--timeout-signal", "USR1"}), HasSubstr("USR1@60"));
  EXPECT_THAT(error_of({"--timeout", "5", "--timeout-signal", "USR1@x"}),
              HasSubstr("--timeout-signal"));
  EXPECT_THAT(error_of({"--forward-signals", "USR1,TERM"}), HasSubstr("leave it out"));
  EXPECT_THAT(error_of({"--forward-signals", ""}), HasSubstr("no such signal"));
  EXPECT_THAT(error_of({"--forward-signals", "USR1,"}), HasSubstr("no such signal"));
}

}  // namespace
}  // namespace hvd
