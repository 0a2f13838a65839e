#include "launcher/hvdctl/ca_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/read_file.h"
#include "launcher/hvdctl/certificate.h"
#include "proto/peer_identity.h"
#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kDay = 86'400;

class Ca : public TemporaryFolder {
 protected:
  Result<std::string> run(std::vector<std::string> words) {
    words.insert(words.end(), {"--dir", authority()});
    return run_ca(words, {"/nowhere", now_});
  }
  std::string must(std::vector<std::string> words) {
    const auto done = run(std::move(words));
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or("");
  }
  std::string refusal(std::vector<std::string> words) {
    const auto done = run(std::move(words));
    EXPECT_FALSE(done);
    if (done) return {};
    EXPECT_EQ(done.error().code, ExitCode::kUsage);
    return done.error().message;
  }

  [[nodiscard]] std::string authority() const { return path_ + "/ca"; }
  [[nodiscard]] std::string out(const std::string& name) const { return path_ + "/" + name; }
  // What another implementation says: 0 is good.
  [[nodiscard]] int verify(const std::string& certificate) const {
    const std::string command = fmt::format(
        "openssl verify -x509_strict -crl_check -CAfile {0}/ca.crt -CRLfile {0}/crl.pem {1} "
        ">/dev/null 2>&1",
        authority(), certificate);
    return std::system(command.c_str());
  }

  std::int64_t now_ = std::time(nullptr);
};

TEST(PeerIdentity, IsOneUriOfOurs) {
  const PeerIdentity alice{PeerIdentity::Kind::kUser, "alice"};
  EXPECT_EQ(to_uri(alice), "spiffe://hvdrun/user/alice");
  EXPECT_EQ(parse_identity(to_uri(alice)), alice);
  EXPECT_EQ(parse_identity("spiffe://hvdrun/node/n-1.x_2"),
            (PeerIdentity{PeerIdentity::Kind::kNode, "n-1.x_2"}));
  for (const char* wrong :
       {"", "spiffe://hvdrun/user/", "spiffe://hvdrun/user/a/b", "spiffe://hvdrun/user/../x",
        "spiffe://hvdrun/user/-a", "spiffe://other/user/a", "SPIFFE://hvdrun/user/a",
        "spiffe://hvdrun/root/a", "spiffe://hvdrun/user/a b", "spiffe://hvdrun/user/a\n"}) {
    EXPECT_EQ(parse_identity(wrong), std::nullopt) << wrong;
  }
}

TEST_F(Ca, IssuesWhatOthersVerify) {
  EXPECT_THAT(must({"init", "--name", "lab"}), HasSubstr("authority lab in " + authority()));
  must({"issue", "--user", "alice", "--out", out("alice")});
  must({"issue", "--node", "node1", "--address", "node1.lab,10.0.0.1,fd00::1", "--out", out("n1")});
  EXPECT_EQ(verify(out("alice") + "/client.crt"), 0);
  EXPECT_EQ(verify(out("n1") + "/agent.crt"), 0);
  const auto facts = read_certificate(read_small_file(out("n1") + "/agent.crt"));
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(to_uri(facts->identity), "spiffe://hvdrun/node/node1");
  EXPECT_THAT(facts->addresses, ElementsAre("node1", "node1.lab", "10.0.0.1", "fd00::1"));
  EXPECT_NEAR(static_cast<double>(facts->validity.until - now_), 365. * kDay, 60);
}

TEST_F(Ca, SecretsAreForTheirOwnersAlone) {
  must({"init"});
  must({"issue", "--user", "alice", "--out", out("alice")});
  for (const std::string& path : {authority(), out("alice")}) {
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U) << path;
  }
  for (const std::string& path : {authority() + "/ca.key", out("alice") + "/client.key"}) {
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U) << path;
  }
}

TEST_F(Ca, RevokedOnesAreVoidAndOthersStay) {
  must({"init"});
  must({"issue", "--user", "alice", "--out", out("alice")});
  must({"issue", "--user", "bob", "--out", out("bob")});
  EXPECT_THAT(must({"revoke", "--user", "alice"}), HasSubstr("1 certificate revoked"));
  EXPECT_NE(verify(out("alice") + "/client.crt"), 0);
  EXPECT_EQ(verify(out("bob") + "/client.crt"), 0);
  EXPECT_THAT(must({"list"}), HasSubstr("revoked "));
  const auto bob = read_certificate(read_small_file(out("bob") + "/client.crt"));
  must({"revoke", "--serial", bob->serial});
  EXPECT_NE(verify(out("bob") + "/client.crt"), 0);
  EXPECT_THAT(refusal({"revoke", "--serial", "00"}), HasSubstr("no such certificate"));
}

TEST_F(Ca, RenewsWithTheSameNamesAndAFreshKey) {
  must({"init"});
  EXPECT_THAT(refusal({"renew", "--node", "node1", "--out", out("n1")}),
              HasSubstr("has no certificate of node node1"));
  must({"issue", "--node", "node1", "--address", "10.0.0.1", "--out", out("n1")});
  const std::string key = read_small_file(out("n1") + "/agent.key");
  EXPECT_THAT(refusal({"issue", "--node", "node1", "--out", out("n1")}),
              HasSubstr("is there already"));
  now_ += 10;
  must({"renew", "--node", "node1", "--out", out("n1"), "--days", "7"});
  EXPECT_NE(read_small_file(out("n1") + "/agent.key"), key);
  const auto facts = read_certificate(read_small_file(out("n1") + "/agent.crt"));
  EXPECT_THAT(facts->addresses, ElementsAre("node1", "10.0.0.1"));
  EXPECT_EQ(facts->validity.until, now_ + 7 * kDay);
  EXPECT_EQ(verify(out("n1") + "/agent.crt"), 0);
}

TEST_F(Ca, NothingOutlivesTheAuthority) {
  must({"init", "--days", "10"});
  must({"issue", "--user", "alice", "--out", out("alice")});
  EXPECT_EQ(read_certificate(read_small_file(out("alice") + "/client.crt"))->validity.until,
            now_ + 10 * kDay);
  now_ += 11 * kDay;
  EXPECT_THAT(must({"list"}), HasSubstr("expired"));
  const auto late = run({"issue", "--user", "bob", "--out", out("bob")});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("has expired"));
  EXPECT_FALSE(std::filesystem::exists(out("bob")));
}

TEST_F(Ca, RefusesInOneSentenceAndWritesNothing) {
  EXPECT_THAT(refusal({"issue", "--user", "alice"}), HasSubstr("holds no authority"));
  EXPECT_FALSE(std::filesystem::exists(authority()));
  must({"init"});
  EXPECT_THAT(refusal({"init"}), HasSubstr("holds an authority already"));
  EXPECT_THAT(refusal({"issue"}), HasSubstr("name one of --user NAME and --node NAME"));
  EXPECT_THAT(refusal({"issue", "--user", "a", "--node", "b"}), HasSubstr("name one of"));
  EXPECT_THAT(refusal({"issue", "--user", "a/../b"}), HasSubstr("is no name"));
  EXPECT_THAT(refusal({"issue", "--user", "a", "--address", "x"}), HasSubstr("belongs to --node"));
  EXPECT_THAT(refusal({"issue", "--node", "a", "--address", "x,DNS:evil y"}),
              HasSubstr("\"DNS:evil y\" is no name and no address"));
  EXPECT_THAT(refusal({"issue", "--user", "a", "--days", "0"}), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal({"grant"}), HasSubstr("is no action"));
  EXPECT_THAT(must({"list"}), Not(HasSubstr("valid\n")));
}

TEST_F(Ca, BrokenFilesAreNamed) {
  must({"init"});
  std::ofstream(authority() + "/crl.pem") << "nonsense";
  const auto broken = run({"list"});
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr(authority() + "/crl.pem: cannot read"));
}

}  // namespace
}  // namespace hvd
