#include "agent/service_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ServiceConfig, SaysWhereAndWho) {
  const auto config = parse_service_config(
      "listen: [unix:/run/hvdrun/agent.sock, 'tls:[::]:50451']  # both\n"
      "tls: /etc/hvdrun/tls\n"
      "clients: [alice, bob.b]\n",
      "agent.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->socket, "/run/hvdrun/agent.sock");
  ASSERT_TRUE(config->tls);
  EXPECT_EQ(config->tls->address, "::");
  EXPECT_EQ(config->tls->port, 50451);
  EXPECT_EQ(config->tls_folder, "/etc/hvdrun/tls");
  EXPECT_THAT(config->clients, ElementsAre("alice", "bob.b"));
  const auto small = parse_service_config("listen: unix:/a\n", "agent.yaml");
  ASSERT_TRUE(small);
  EXPECT_FALSE(small->tls);
}

TEST(ServiceConfig, ErrorsHaveTheirLineAndRemedy) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"listen: unix:/a\nlisen: x\n", "f:2: there is no key lisen; the keys are"},
      {"listen: unix:/a\nlisten: unix:/b\n", "f:2: listen stands twice"},
      {"\nlisten: unix:a\n", "f:2: \"unix:a\" is no place to listen"},
      {"listen: tcp:1\n", "is no place to listen"},
      {"listen: 'tls:::1:50451'\n", "is no place to listen"},
      {"listen: tls:node1:50451\n", "is no place to listen"},
      {"listen: tls:0.0.0.0:0\n", "is no place to listen"},
      {"listen: [unix:/a, unix:/b]\n", "f:1: a second unix socket"},
      {"listen: {a: b}\n", "f:1: listen is a text or a list of texts"},
      {"listen: tls:0.0.0.0:1\nclients: a\n", "f: to listen with TLS it needs tls:"},
      {"listen: tls:0.0.0.0:1\ntls: /t\n", "f: nobody may come by TLS"},
      {"listen: unix:/a\ntls: t\n", "f:2: tls is the absolute path"},
      {"listen: unix:/a\nclients: [a, b/c]\n", "f:2: \"b/c\" is no name"},
      {"tls: /t\n", "f: it says nowhere to listen"},
      {"- a\n", "f:1: a list of KEY: VALUE lines is wanted"},
      {"listen: [unix:/a\n", "f:2: "},
      {"a: 1\n---\nb: 1\n", "f: one document is wanted"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = parse_service_config(text, "f");
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().message, HasSubstr(message)) << text;
    EXPECT_EQ(config.error().code, ExitCode::kUsage);
  }
}

}  // namespace
}  // namespace hvd
