#include "launcher/hvdctl/control_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>

#include "launcher/hvdctl/ca_command.h"
#include "proto/tls_pump.h"
#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

using boost::asio::ip::tcp;
using boost::asio::local::stream_protocol;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr const char* kJob = "0123456789abcdef0123456789abcdef";
constexpr const char* kIdle = R"(ok {"node":"here","version":"1","num_gpus":2,"jobs":[]})";

std::string busy(const std::string& node) {
  return fmt::format(R"(ok {{"node":"{}","jobs":[{{"job":"{}","user":"ann"}}]}})", node, kJob);
}

// An agent of this test's: answers what stands behind "ctl" by the word, on a thread of its own.
class FakeAgent {
 public:
  // What follows the marker; empty: nothing is said. A text that begins with '=' is all of it.
  using Answers = std::function<std::string(const std::string& words)>;

  explicit FakeAgent(Answers answers) : answers_(std::move(answers)) {}
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;
  ~FakeAgent() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void serve_at(const std::string& path) {
    start(stream_protocol::acceptor(loop_, stream_protocol::endpoint(path)));
  }
  // The port. Of a context: TLS.
  std::uint16_t serve_tls(std::shared_ptr<boost::asio::ssl::context> context) {
    context_ = std::move(context);
    tcp::acceptor acceptor(loop_, {boost::asio::ip::address_v4::loopback(), 0});
    const std::uint16_t port = acceptor.local_endpoint().port();
    start(std::move(acceptor));
    return port;
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  template <typename Acceptor>
  void start(Acceptor acceptor) {
    boost::asio::co_spawn(loop_, accept(std::move(acceptor)), boost::asio::detached);
    thread_ = std::thread([this] { loop_.run(); });
  }

  template <typename Acceptor>
  Task<void> accept(Acceptor acceptor) {
    while (true) {
      auto [error, socket] = co_await acceptor.async_accept(kAwait);
      if (error) co_return;
      boost::asio::co_spawn(loop_, meet(std::move(socket)), boost::asio::detached);
    }
  }

  Task<void> meet(stream_protocol::socket socket) { co_await answer(socket); }
  Task<void> meet(tcp::socket socket) {
    TlsPump::Stream stream(std::move(socket), *context_);
    const auto [error] =
        co_await stream.async_handshake(boost::asio::ssl::stream_base::server, kAwait);
    if (!error) co_await answer(stream);
  }

  template <typename Stream>
  Task<void> answer(Stream& stream) {
    std::string line;
    const auto [error, size] = co_await boost::asio::async_read_until(
        stream, boost::asio::dynamic_buffer(line), '\n', kAwait);
    if (error) co_return;
    const std::size_t blank = line.find(' ');
    EXPECT_THAT(line.substr(0, blank), MatchesRegex("HVDCTL1-[0-9a-f]{16}"));
    EXPECT_EQ(line.substr(blank, 5), " ctl ");
    const std::string words = line.substr(blank + 5, size - blank - 6);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(words);
    }
    std::string said = answers_(words);
    if (said.empty()) {
      boost::asio::steady_timer forever(loop_, std::chrono::hours(1));
      co_await forever.async_wait(kAwait);
    }
    said = said.front() == '=' ? said.substr(1) : line.substr(0, blank + 1) + said + "\n";
    co_await boost::asio::async_write(stream, boost::asio::buffer(said), kAwait);
  }

  const Answers answers_;
  Loop loop_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  std::thread thread_;
};

FakeAgent::Answers always(std::string said) {
  return [said](const std::string&) { return said; };
}

class Control : public TemporaryFolder {
 protected:
  ControlOutcome run(const std::vector<std::string>& words) {
    return run_control(loop_, words, {{"HOME", path_}}, std::time(nullptr));
  }
  ControlOutcome run_here(std::vector<std::string> words) {
    words.insert(words.end(), {"--socket", socket(), "--timeout", "5"});
    return run(words);
  }
  [[nodiscard]] std::string socket() const { return path_ + "/agent.sock"; }

  Loop loop_;
};

TEST_F(Control, ThisMachineIsAskedOverItsSocket) {
  FakeAgent agent(always(kIdle));
  agent.serve_at(socket());
  const ControlOutcome nodes = run_here({"nodes"});
  EXPECT_EQ(nodes.code, 0) << nodes.err;
  EXPECT_EQ(nodes.out,
            "NODE  VERSION  JOBS  GPUS  STATE\n"
            "here  1        0     2     ok\n");
  EXPECT_EQ(run_here({"jobs", "--json"}).code, 0);
  EXPECT_THAT(agent.asked(), ElementsAre("status", "status"));
}

TEST_F(Control, WhoDoesNotAnswerIsNamedWithTheReason) {
  ControlOutcome none = run_here({"jobs"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err,
              HasSubstr(socket() + ": No such file or directory; look whether hvd-agent"));
  const std::pair<std::string, const char*> others[] = {
      {"", "unreachable: no answer within 0.3"},
      {"=", "unreachable: the connection ended before an answer"},
      {"=half", "faulty: the connection ended within its answer"},
      {"=\x1b[2J\n", "faulty: its answer makes no sense: it begins with \"\\x1b[2J\""},
      {"=" + std::string(5 << 20, 'x'), "faulty: its answer is longer than 4194304 bytes"},
      {"ok []", "faulty: its answer makes no sense: it is no object"},
      {"error no, alice", "refused: no, alice"},
  };
  for (const auto& [said, expected] : others) {
    std::filesystem::remove(socket());
    FakeAgent agent(always(said));
    agent.serve_at(socket());
    const ControlOutcome outcome = run({"jobs", "--socket", socket(), "--timeout", "0.3"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(expected));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(Control, DrainSaysTheReasonAndUndrainTakesItBack) {
  FakeAgent agent([](const std::string& words) {
    return fmt::format(R"(ok {{"draining":"{}"}})", words == "undrain" ? "" : "new disks");
  });
  agent.serve_at(socket());
  EXPECT_THAT(run_here({"drain", "--reason", "new disks"}).out,
              HasSubstr(": draining: new disks\n"));
  EXPECT_THAT(run_here({"undrain"}).out, HasSubstr(": takes jobs\n"));
  EXPECT_THAT(agent.asked(), ElementsAre("drain new disks", "undrain"));
}

TEST_F(Control, HelpAndUsageReachNobody) {
  EXPECT_EQ(run({"kill", "--help"}).code, 0);
  EXPECT_EQ(run({"kill"}).code, 2);
  EXPECT_EQ(run({"nodes", "-H", "node1"}).code, 2);
  EXPECT_THAT(run({"nodes", "-H", "node1"}).err,
              HasSubstr(path_ + "/.config/hvdrun/tls/client.key: No such file"));
}

// Nodes are fakes on one address, told apart by their ports.
class ControlByTls : public Control {
 protected:
  void SetUp() override {
    Control::SetUp();
    ca({"init"});
    ca({"issue", "--user", "alice", "--out", path_ + "/.config/hvdrun/tls"});
    ca({"issue", "--node", "node1", "--address", "127.0.0.1", "--out", path_ + "/node"});
  }
  void ca(std::vector<std::string> words) {
    words.insert(words.end(), {"--dir", path_ + "/ca"});
    const auto done = run_ca(words, {"/nowhere", std::time(nullptr)});
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string serve(FakeAgent& agent) {
    const auto context = make_tls_context(node_files_in(path_ + "/node"), TlsEnd::kServer);
    EXPECT_TRUE(context) << context.error().message;
    return context ? fmt::format("127.0.0.1:port={}", agent.serve_tls(*context)) : "";
  }
};

TEST_F(ControlByTls, AllNodesAreToldAndOnlyTheBrokenOnesFail) {
  FakeAgent idle(always(kIdle));
  FakeAgent silent(always(""));
  FakeAgent strange(always("=refused: user alice is none of the clients\n"));
  const std::string hosts =
      serve(idle) + "," + serve(silent) + "," + serve(strange) + ",127.0.0.1:port=1";
  const auto begun = std::chrono::steady_clock::now();
  const ControlOutcome nodes = run({"nodes", "-H", hosts, "--timeout", "1"});
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(3));
  EXPECT_EQ(nodes.code, 1);
  EXPECT_THAT(nodes.out,
              MatchesRegex("NODE .*\n"
                           "127.0.0.1  1  .* ok\n"
                           "127.0.0.1  -  .* unreachable: no answer within 1.*\n"
                           "127.0.0.1  -  .* refused: user alice is none of the clients\n"
                           "127.0.0.1  -  .* unreachable: TCP port 1: Connection refused; .*\n"));
  EXPECT_EQ(nodes.err, "");
}

TEST_F(ControlByTls, AJobIsKilledWhereItRunsByItsFirstDigits) {
  const auto answers = [](std::string status, std::string killed) {
    return [=](const std::string& words) { return words == "status" ? status : killed; };
  };
  FakeAgent first(answers(busy("a"), R"(ok {"stopped":1})"));
  FakeAgent second(answers(busy("b"), R"(ok {"stopped":0})"));
  FakeAgent other(answers(kIdle, "error not here"));
  const std::string hosts = serve(first) + "," + serve(second) + "," + serve(other);
  const ControlOutcome killed = run({"kill", "012345", "-H", hosts});
  EXPECT_EQ(killed.code, 0) << killed.err;
  EXPECT_EQ(killed.out, fmt::format("job {}: stopped on 127.0.0.1\n", kJob));
  EXPECT_THAT(first.asked(), ElementsAre("status", fmt::format("kill {}", kJob)));
  EXPECT_THAT(second.asked(), ElementsAre("status", fmt::format("kill {}", kJob)));
  EXPECT_THAT(other.asked(), ElementsAre("status"));
  const ControlOutcome none = run({"kill", "abcdef", "-H", hosts});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("no job here begins with abcdef"));
}

TEST_F(ControlByTls, ARefusedKillIsAnError) {
  FakeAgent agent([](const std::string& words) {
    return words == "status" ? busy("a") : "error job 0123 is bob's";
  });
  const ControlOutcome killed = run({"kill", "012345", "-H", serve(agent)});
  EXPECT_EQ(killed.code, 1);
  EXPECT_EQ(killed.out, "");
  EXPECT_EQ(killed.err, "hvdctl: error: 127.0.0.1: refused: job 0123 is bob's\n");
}

TEST_F(ControlByTls, ARefusedCertificateIsNamed) {
  ca({"revoke", "--user", "alice"});
  std::filesystem::copy_file(path_ + "/ca/crl.pem", path_ + "/node/crl.pem",
                             std::filesystem::copy_options::overwrite_existing);
  FakeAgent agent(always(kIdle));
  const ControlOutcome jobs = run({"jobs", "-H", serve(agent)});
  EXPECT_EQ(jobs.code, 1);
  EXPECT_THAT(jobs.err, HasSubstr("127.0.0.1: refused: our certificate " + path_));
  EXPECT_THAT(jobs.err, HasSubstr("revoked"));
}

}  // namespace
}  // namespace hvd
