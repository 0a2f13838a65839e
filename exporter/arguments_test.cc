#include "exporter/arguments.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using testing::HasSubstr;
using Wish = ExporterArguments::Wish;

TEST(ExporterArgumentsTest, DefaultsAreTheNodesOwn) {
  const auto arguments = parse_exporter_arguments({});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->wish, Wish::kServe);
  EXPECT_EQ(arguments->listen, "127.0.0.1:9451");
  EXPECT_EQ(arguments->agent_socket, "/run/hvdrun/agent.sock");
}

TEST(ExporterArgumentsTest, ValuesStandBehindABlankOrAnEqualsSign) {
  const auto arguments = parse_exporter_arguments({"--listen=0.0.0.0:9000", "--agent", "/tmp/a=b"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->listen, "0.0.0.0:9000");
  EXPECT_EQ(arguments->agent_socket, "/tmp/a=b");
}

TEST(ExporterArgumentsTest, HelpAndVersionWin) {
  EXPECT_EQ(parse_exporter_arguments({"--listen", "1.2.3.4:5", "--help"})->wish, Wish::kHelp);
  EXPECT_EQ(parse_exporter_arguments({"--version"})->wish, Wish::kVersion);
}

struct Bad {
  std::vector<std::string_view> words;
  const char* told;
};

TEST(ExporterArgumentsTest, SaysWhatIsWrong) {
  const Bad all[] = {
      {{"--port", "1"}, "--port is no option"},
      {{"metrics"}, "metrics is no option"},
      {{"--listen"}, "--listen wants a value"},
      {{"--listen", "9451"}, "--listen 9451: an IPv4 address and a port are wanted"},
      {{"--listen", "localhost:9451"}, "--listen localhost:9451: an IPv4 address"},
      {{"--listen", "::1:9451"}, "an IPv4 address"},
      {{"--listen", "[::1]:9451"}, "an IPv4 address"},
      {{"--listen", "127.0.0.1:70000"}, "an IPv4 address"},
      {{"--listen", "127.0.0.1:"}, "an IPv4 address"},
      {{"--listen="}, "an IPv4 address"},
      {{"--agent", "agent.sock"}, "--agent agent.sock: the absolute path"},
  };
  for (const Bad& bad : all) {
    const auto arguments = parse_exporter_arguments(bad.words);
    ASSERT_FALSE(arguments) << bad.told;
    EXPECT_THAT(arguments.error().message, HasSubstr(bad.told));
    EXPECT_EQ(arguments.error().code, ExitCode::kUsage);
  }
}

TEST(ExporterArgumentsTest, AListenPlaceIsInNetworkOrder) {
  const auto place = parse_listen("127.0.0.1:9451");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(place->sin_port, htons(9451));
  EXPECT_EQ(parse_listen("0.0.0.0:0")->sin_port, 0);
}

}  // namespace
}  // namespace hvd
