#include "agent/service_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

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
  EXPECT_THAT(config->clients, ElementsAre(Key("alice"), Key("bob.b")));
  const auto small = parse_service_config("listen: unix:/a\n", "agent.yaml");
  ASSERT_TRUE(small);
  EXPECT_FALSE(small->tls);
}

TEST(ServiceConfig, SaysWhatEachMayDo) {
  const auto config = parse_service_config(
      "listen: unix:/a\nclients:\n  alice: {}\n  bob:\n  ci: {run_as: [build, train], max_jobs: "
      "4}\n"
      "admins: carol\nmax_jobs: 8\nbusy_gpus: wait\nlog_level: debug\n",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->clients, ElementsAre(Key("alice"), Key("bob"), Key("ci")));
  EXPECT_THAT(config->clients.at("ci").run_as, ElementsAre("build", "train"));
  EXPECT_EQ(config->clients.at("ci").max_jobs, 4);
  EXPECT_EQ(config->clients.at("bob").max_jobs, std::nullopt);
  EXPECT_THAT(config->admins, ElementsAre("carol"));
  EXPECT_EQ(config->max_jobs, 8);
  EXPECT_TRUE(config->waits_for_gpus);
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
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
      {"listen: unix:/a\nclients: [a, b/c]\n", "f:2: clients: \"b/c\" is no name"},
      {"listen: unix:/a\nclients:\n  a: {runas: b}\n", "f:3: a client has no key runas"},
      {"listen: unix:/a\nclients:\n  a: {}\n  a: {}\n", "f:4: a stands twice"},
      {"listen: unix:/a\nclients: {a: b}\n", "f:2: what a client may is written as"},
      {"listen: unix:/a\nclients: {a: {max_jobs: 0}}\n", "f:2: max_jobs is a whole number"},
      {"listen: unix:/a\nmax_jobs: many\n", "f:2: max_jobs is a whole number"},
      {"listen: unix:/a\nbusy_gpus: no\n", "f:2: busy_gpus is refuse or wait"},
      {"listen: unix:/a\nlog_level: [a]\n", "f:2: log_level is warning"},
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
