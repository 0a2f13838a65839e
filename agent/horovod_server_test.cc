// The server over real sockets: what it answers to Horovod's clients, and that nobody else can take
// more from it than its limits.
#include "agent/horovod_server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/unique_fd.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kLoopback = "127.0.0.1";

UniqueFd connect_to(std::uint16_t port, const char* address = kLoopback) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, address, &to.sin_addr);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
  return socket;
}

void send_text(const UniqueFd& socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Until the end of the connection, which must come within the limit. "RESET" where it broke.
std::string read_all(const UniqueFd& socket, milliseconds limit = milliseconds(3000)) {
  const timeval time{limit.count() / 1000, limit.count() % 1000 * 1000};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  std::string text;
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t n = ::recv(socket.get(), block.data(), block.size(), 0);
    if (n == 0) return text;
    if (n < 0) return text + (errno == EAGAIN ? "TIMEOUT" : "RESET");
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

// As the client that is compiled into Horovod writes it.
std::string request(std::string_view method, std::string_view path, std::string_view body = {}) {
  return fmt::format("{} {} HTTP/1.1\r\nHost: 10.9.0.1\r\nContent-Length: {}\r\n\r\n{}", method,
                     path, body.size(), body);
}

std::string answer(unsigned status, std::string_view reason, std::string_view body = {}) {
  return fmt::format("HTTP/1.0 {} {}\r\nContent-Length: {}\r\n\r\n{}", status, reason, body.size(),
                     body);
}

class HorovodServerTest : public ::testing::Test {
 protected:
  HorovodServerTest() { limits_.request_time = milliseconds(150); }
  ~HorovodServerTest() override { stop(); }

  void serve(const std::string& listen_at = kLoopback, const std::string& only_at = kLoopback) {
    server_.emplace(loop_, limits_);
    const auto port = server_->listen(listen_at);
    ASSERT_TRUE(port) << port.error().message;
    port_ = *port;
    server_->serve(HorovodStore({{"global", 2}}), only_at);
    thread_ = std::thread([this] {
      const auto work = boost::asio::make_work_guard(loop_);
      loop_.run();
    });
  }

  void stop() {
    if (!thread_.joinable()) return;
    boost::asio::post(loop_, [this] {
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  std::string ask(const std::string& text) const {
    const UniqueFd socket = connect_to(port_);
    send_text(socket, text);
    return read_all(socket);
  }

  // That the loop is free: how long a thing posted to it takes.
  milliseconds loop_delay() {
    const auto begin = steady_clock::now();
    std::promise<void> done;
    boost::asio::post(loop_, [&done] { done.set_value(); });
    done.get_future().wait();
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
  }

  HorovodServer::Limits limits_;
  Loop loop_{1};
  std::optional<HorovodServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(HorovodServerTest, AnswersAsHorovodsClientReadsIt) {
  serve();
  const std::string bytes("\0\x01\r\n\r\n\xff", 7);
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
  EXPECT_EQ(ask(request("PUT", "/global/0", bytes)), answer(200, "OK"));
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(200, "OK", bytes));
  EXPECT_EQ(ask(request("PUT", "/global/1")), answer(200, "OK"));
  EXPECT_EQ(ask(request("GET", "/global/1")), answer(200, "OK"));
  EXPECT_EQ(ask(request("DELETE", "/global/0")), answer(200, "OK"));
  EXPECT_EQ(ask(request("DELETE", "/global/1")), answer(200, "OK"));
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
}

TEST_F(HorovodServerTest, AValueThatComesInPiecesIsStoredWhole) {
  serve();
  const std::string value(300000, 'v');
  const std::string whole = request("PUT", "/global/0", value);
  const UniqueFd socket = connect_to(port_);
  for (std::size_t at = 0; at < whole.size(); at += 100001) {
    send_text(socket, std::string_view(whole).substr(at, 100001));
    loop_delay();
  }
  EXPECT_EQ(read_all(socket), answer(200, "OK"));
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(200, "OK", value));
}

TEST_F(HorovodServerTest, BadRequestsAreAnsweredAndForgotten) {
  serve();
  struct Case {
    std::string text;
    const char* begins;
  };
  const std::vector<Case> cases = {
      {request("GET", "/global"), "HTTP/1.0 400 "},
      {request("GET", "/global/0/1"), "HTTP/1.0 400 "},
      {request("POST", "/global/0", "x"), "HTTP/1.0 501 "},
      {request("NONSENSE", "/global/0"), "HTTP/1.0 501 "},
      {"PUT /global/0 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.0 400 "},
      {"PUT /global/0 HTTP/1.1\r\nContent-Length: many\r\n\r\n", "HTTP/1.0 400 "},
      {"PUT /global/0 HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.0 400 "},
      {"GET /global/0 HTTP/9.7\r\n\r\n", "HTTP/1.0 400 "},
      {"GET /global/0\r\n\r\n", "HTTP/1.0 400 "},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), "HTTP/1.0 400 "},
      {std::string(4096, '\0'), "HTTP/1.0 400 "},
      {"GET /global/0 HTTP/1.1\r\nX: " + std::string(100000, 'x') + "\r\n\r\n", "HTTP/1.0 400 "},
      {request("GET", "/global/" + std::string(4000, 'k')), "HTTP/1.0 400 "},
      {"PUT /global/0 HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", "HTTP/1.0 413 "},
      {request("PUT", "/global/0", std::string(2 << 20, 'b')), "HTTP/1.0 413 "},
  };
  for (const Case& c : cases) {
    const std::string got = ask(c.text);
    EXPECT_THAT(got, StartsWith(c.begins)) << c.text.substr(0, 60);
    EXPECT_THAT(got, testing::EndsWith("\r\nContent-Length: 0\r\n\r\n")) << c.text.substr(0, 60);
  }
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
}

TEST_F(HorovodServerTest, ABodyThatDoesNotComeIs408) {
  serve();
  const UniqueFd socket = connect_to(port_);
  send_text(socket, "PUT /global/0 HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf");
  const auto begin = steady_clock::now();
  EXPECT_EQ(read_all(socket), answer(408, "Request Timeout"));
  EXPECT_GE(steady_clock::now() - begin, milliseconds(100));
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
}

TEST_F(HorovodServerTest, ManyBytesOneAtATimeBuyNoTime) {
  serve();
  const UniqueFd socket = connect_to(port_);
  std::atomic<bool> is_over = false;
  std::thread drip([&] {
    while (!is_over) {
      send_text(socket, "G");
      loop_delay();
      usleep(5000);
    }
  });
  const std::string got = read_all(socket, milliseconds(2000));
  is_over = true;
  drip.join();
  // The letters are a method that never ends; the connection does.
  EXPECT_THAT(got, testing::Not(HasSubstr("TIMEOUT")));
}

TEST_F(HorovodServerTest, ClientsThatGoAwayLeaveNothing) {
  serve();
  for (const char* text : {"", "GET", "PUT /global/0 HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf"}) {
    for (int i = 0; i < 100; ++i) send_text(connect_to(port_), text);
  }
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
}

TEST_F(HorovodServerTest, WhoDoesNotReadItsAnswerIsGivenUp) {
  limits_.max_connections = 1;
  limits_.max_body = 16 << 20;
  serve();
  ASSERT_EQ(ask(request("PUT", "/global/0", std::string(16 << 20, 'b'))), answer(200, "OK"));
  const UniqueFd deaf = connect_to(port_);
  send_text(deaf, request("GET", "/global/0"));
  // The only place is taken until the limit, then others are heard.
  EXPECT_EQ(ask(request("GET", "/global/1")), answer(404, "Not Found"));
}

int num_open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST_F(HorovodServerTest, IdleConnectionsAreBoundedAndOthersWaitTheirTurn) {
  limits_.max_connections = 8;
  serve();
  const int before = num_open_descriptors();
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(connect_to(port_));
  loop_delay();
  EXPECT_LE(num_open_descriptors(), before + 40 + 8);
  EXPECT_LT(loop_delay(), milliseconds(100));
  // 40 idle ones in lots of 8, each lot for the limit of 150 ms.
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
}

TEST_F(HorovodServerTest, OnlyTheRanksAddressIsHeard) {
  serve("0.0.0.0", "127.0.0.2");
  const UniqueFd right = connect_to(port_, "127.0.0.2");
  send_text(right, request("GET", "/global/0"));
  EXPECT_EQ(read_all(right), answer(404, "Not Found"));
  const UniqueFd wrong = connect_to(port_, kLoopback);
  send_text(wrong, request("GET", "/global/0"));
  EXPECT_THAT(read_all(wrong), testing::AnyOf("", "RESET"));
}

TEST_F(HorovodServerTest, WhoComesBeforeItServesIsAnsweredThen) {
  server_.emplace(loop_, limits_);
  port_ = server_->listen("0.0.0.0").value();
  const UniqueFd early = connect_to(port_);
  send_text(early, request("GET", "/global/0"));
  server_->serve(HorovodStore({}), "");
  thread_ = std::thread([this] { loop_.run(); });
  EXPECT_EQ(read_all(early), answer(404, "Not Found"));
}

TEST_F(HorovodServerTest, AnAddressThatTheNodeDoesNotHaveIsTold) {
  HorovodServer server(loop_);
  EXPECT_THAT(server.listen("192.0.2.1").error().message, HasSubstr("192.0.2.1"));
  EXPECT_THAT(server.listen("::1").error().message, HasSubstr("not an IPv4 address"));
  server.serve(HorovodStore({}), "");
  EXPECT_EQ(loop_.run(), 0U);
}

TEST_F(HorovodServerTest, ItsEndEndsWhatIsOpen) {
  limits_.request_time = std::chrono::minutes(5);
  serve();
  const int before = num_open_descriptors();
  const UniqueFd idle = connect_to(port_);
  const UniqueFd half = connect_to(port_);
  send_text(half, "PUT /global/0 HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_EQ(ask(request("GET", "/global/0")), answer(404, "Not Found"));
  std::promise<void> done;
  boost::asio::post(loop_, [this, &done] {
    server_->close();
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_THAT(read_all(idle), testing::AnyOf("", "RESET"));
  EXPECT_THAT(read_all(half), testing::AnyOf("", "RESET"));
  EXPECT_FALSE(connect_to(port_).is_valid());
  loop_delay();
  EXPECT_EQ(num_open_descriptors(), before - 1 + 2);  // less the listening one
}

// What 32 ranks ask while they find each other: 2,500 requests, 10 MB.
TEST_F(HorovodServerTest, AJobOf32RanksIsServedQuickly) {
  limits_.request_time = std::chrono::seconds(3);
  serve();
  constexpr int kRanks = 32;
  const std::string value(136 * (kRanks - 1), 'a');
  std::atomic<int> num_wrong = 0;
  const auto expect = [&](const std::string& text, const std::string& wanted) {
    if (ask(text) != wanted) ++num_wrong;
  };
  const auto begin = steady_clock::now();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      expect(request("PUT", fmt::format("/mesh/{}", rank), value), answer(200, "OK"));
      for (int i = 0; i < kRanks; ++i) {
        const std::string get = request("GET", fmt::format("/mesh/{}", i));
        while (ask(get) == answer(404, "Not Found")) usleep(10000);
        expect(get, answer(200, "OK", value));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(num_wrong, 0);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(4));
}

}  // namespace
}  // namespace hvd
