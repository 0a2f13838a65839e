#include "runtime/tcp_place.h"

#include <gmock/gmock.h>

#include "runtime/tcp_socket.h"

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// Of a network for documentation: no machine has it.
constexpr const char* kNobodys = "192.0.2.7";

std::string refusal_of(const Result<void>& result) {
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, ExitCode::kUsage);
  return result.error().message;
}

TEST(TcpPlace, AnUnknownHostIsRefusedByName) {
  EXPECT_TRUE(check_tcp_host("127.0.0.1", 1234));
  EXPECT_TRUE(check_tcp_host("localhost", 1234));
  // No name of any network; where no resolver answers at all it is not refused yet.
  const auto unknown = check_tcp_host("no such host", 1234);
  EXPECT_THAT(refusal_of(unknown), HasSubstr("tcp://no such host:1234"));
  EXPECT_THAT(refusal_of(unknown), HasSubstr("HVDRUN_INIT"));
}

TEST(TcpPlace, APortThatIsTakenIsRefused) {
  const auto other = listen_on("127.0.0.1");
  ASSERT_TRUE(other);
  const std::string expected = fmt::format("rank 0 cannot listen at port {} of", other->port);
  for (const char* host : {"127.0.0.1", "localhost", "head"}) {
    const std::string text = refusal_of(check_tcp_port(host, other->port));
    EXPECT_THAT(text, HasSubstr(expected)) << host;
    EXPECT_THAT(text, HasSubstr("in use by another program or job")) << host;
    EXPECT_THAT(text, HasSubstr(fmt::format("HVDRUN_INIT=tcp://{}:PORT", host)));
  }
}

TEST(TcpPlace, AFreePortIsNone) {
  int port = 0;
  {
    const auto other = listen_on("127.0.0.1");
    ASSERT_TRUE(other);
    port = other->port;
  }
  EXPECT_TRUE(check_tcp_port("127.0.0.1", port));
  EXPECT_TRUE(check_tcp_port("head", port));
}

TEST(TcpPlace, KnowsItsOwnAddresses) {
  EXPECT_TRUE(is_host_here("localhost"));
  EXPECT_TRUE(is_host_here("127.0.0.1"));
  EXPECT_FALSE(is_host_here(kNobodys));
  EXPECT_FALSE(is_host_here("no such host"));
}

TEST(TcpPlace, TheOwnAddressIsNumericAndHere) {
  EXPECT_TRUE(check_own_address(""));
  EXPECT_TRUE(check_own_address("127.0.0.1"));
  EXPECT_THAT(refusal_of(check_own_address("localhost")),
              HasSubstr("HVDRUN_ADDRESS=localhost is no numeric address"));
  EXPECT_THAT(refusal_of(check_own_address(kNobodys)),
              HasSubstr("HVDRUN_ADDRESS=192.0.2.7 is no address of"));
}

TEST(TcpPlace, SilenceHasAReason) {
  int port = 0;
  {
    const auto other = listen_on("127.0.0.1");
    ASSERT_TRUE(other);
    port = other->port;
    EXPECT_THAT(describe_silence("127.0.0.1", port), HasSubstr("is not rank 0 of a job"));
  }
  EXPECT_EQ(describe_silence("127.0.0.1", port),
            fmt::format("nobody listens at 127.0.0.1:{} (rank 0 would): Connection refused", port));
  EXPECT_THAT(describe_silence("no such host", port),
              MatchesRegex("nobody listens at no such host:.*cannot be found.*"));
}

}  // namespace
}  // namespace hvd
