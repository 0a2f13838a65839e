// The agent's pure parts and its small pieces of I/O, without gRPC.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "agent/executable.h"
#include "agent/fabric.h"
#include "agent/fabric_probe.h"
#include "agent/interfaces.h"
#include "agent/job_dir.h"
#include "agent/job_state.h"
#include "agent/master_port.h"
#include "agent/output_queue.h"
#include "agent/preflight.h"
#include "agent/shim/frames.h"
#include "agent/spool.h"
#include "agent/store_relay.h"
#include "agent/worker_spec.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
namespace v1 = hvdrun::v1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(path_.data()), nullptr); }
  void TearDown() override { fs::remove_all(path_); }
  std::string write(const std::string& name, mode_t mode) {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n";
    chmod(path.c_str(), mode);
    return path;
  }
  std::string path_ = "/tmp/hvdrun-agent-test-XXXXXX";
};

// --- executable

using Executable = TemporaryFolder;

TEST_F(Executable, FindsTheFirstOnPath) {
  fs::create_directories(path_ + "/a");
  fs::create_directories(path_ + "/b");
  write("b/tool", 0755);
  const auto found = find_executable("tool", path_ + "/a:" + path_ + "/b", "/");
  EXPECT_EQ(found.path, path_ + "/b/tool");
  EXPECT_EQ(found.errno_value, 0);
}

TEST_F(Executable, TellsAbsentFromNotExecutable) {
  EXPECT_EQ(find_executable("no-such-tool", path_, "/").errno_value, ENOENT);
  write("data", 0644);
  EXPECT_EQ(find_executable("data", path_, "/").errno_value, EACCES);
  EXPECT_EQ(find_executable("", path_, "/").errno_value, ENOENT);
}

TEST_F(Executable, GoesOnPastAFileThatMayNotBeExecuted) {
  fs::create_directories(path_ + "/a");
  write("a/tool", 0644);
  write("tool", 0755);
  EXPECT_EQ(find_executable("tool", path_ + "/a:" + path_, "/").path, path_ + "/tool");
}

TEST_F(Executable, ResolvesAPathWithASlashAgainstTheFolder) {
  write("run.sh", 0755);
  EXPECT_EQ(find_executable("./run.sh", "/bin", path_).path, path_ + "/./run.sh");
  EXPECT_EQ(find_executable("./sh", "/bin", path_).errno_value, ENOENT);
}

TEST_F(Executable, EmptyPathEntryIsTheFolder) {
  write("tool", 0755);
  EXPECT_EQ(find_executable("tool", "/nowhere::", path_).path, path_ + "/tool");
}

TEST_F(Executable, FolderIsNotExecutable) {
  fs::create_directories(path_ + "/dir");
  EXPECT_EQ(find_executable("./dir", "/bin", path_).errno_value, EACCES);
}

TEST_F(Executable, ChecksWorkingFolder) {
  EXPECT_EQ(check_folder(path_), 0);
  EXPECT_EQ(check_folder(path_ + "/none"), ENOENT);
  EXPECT_EQ(check_folder(write("file", 0644)), ENOTDIR);
}

// --- interfaces

v1::Interface make_interface(const std::string& name, std::uint32_t speed) {
  v1::Interface interface;
  interface.set_name(name);
  interface.set_speed_mbit(speed);
  interface.set_is_up(true);
  interface.set_is_loopback(name == "lo");
  interface.set_is_virtual(is_virtual_interface(name));
  return interface;
}

std::vector<std::string> names(const std::vector<v1::Interface>& interfaces) {
  std::vector<std::string> result;
  for (const auto& interface : interfaces) result.push_back(interface.name());
  return result;
}

TEST(Interfaces, OrdersBySpeedThenRouteWithVirtualAndLoopbackLast) {
  std::vector<v1::Interface> interfaces = {
      make_interface("lo", 0),       make_interface("docker0", 10000),
      make_interface("eth0", 1000),  make_interface("eth1", 1000),
      make_interface("ib0", 200000), make_interface("eth9", 400000)};
  interfaces.back().set_is_up(false);
  order_interfaces(&interfaces, {"eth1", "eth0"});
  EXPECT_THAT(names(interfaces), ElementsAre("ib0", "eth1", "eth0", "docker0", "lo", "eth9"));
}

TEST(Interfaces, ReadsDefaultRoutesFirstByMetric) {
  const std::string table =
      "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
      "eth2\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
      "wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
      "eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
  EXPECT_THAT(parse_route_order(table), ElementsAre("eth0", "wlan0", "eth2"));
  EXPECT_TRUE(parse_route_order("").empty());
  EXPECT_TRUE(parse_route_order("garbage\nmore").empty());
}

TEST(Interfaces, LoopbackHasItsAddress) {
  const auto interfaces = read_interfaces();
  EXPECT_EQ(interface_of("127.0.0.1", interfaces), "lo");
  EXPECT_EQ(interface_of("192.0.2.1", interfaces), "");
  for (const auto& interface : interfaces) {
    EXPECT_EQ(interface.addresses_size(), interface.prefix_lengths_size());
    for (const auto& address : interface.addresses()) EXPECT_NE(address.substr(0, 4), "fe80");
  }
}

// --- job folder

using JobDir = TemporaryFolder;
constexpr const char* kJobId = "0123456789abcdef0123456789abcdef";

TEST_F(JobDir, IsFreshPrivateAndNamed) {
  const std::string parent = path_ + "/hvdrun";
  const auto first = plan_job_dir({parent}, kJobId, 7);
  const auto second = plan_job_dir({parent}, kJobId, 7);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(fs::exists(*first)) << "the shim is told first";
  ASSERT_TRUE(make_job_dir(*first));
  EXPECT_FALSE(make_job_dir(*first)) << "never somebody else's";
  EXPECT_NE(*first, *second);
  EXPECT_THAT(*first, HasSubstr("/01234567-7-"));
  struct stat info {};
  ASSERT_EQ(stat(first->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(JobDir, RefusesALinkAFileAndAnOpenFolder) {
  fs::create_directories(path_ + "/real");
  chmod((path_ + "/real").c_str(), 0700);
  fs::create_directory_symlink(path_ + "/real", path_ + "/link");
  EXPECT_FALSE(plan_job_dir({path_ + "/link"}, kJobId, 0));
  const auto file = plan_job_dir({write("file", 0600)}, kJobId, 0);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("is not a folder"));
  chmod((path_ + "/real").c_str(), 0755);
  const auto open = plan_job_dir({path_ + "/real"}, kJobId, 0);
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("open to others"));
}

TEST_F(JobDir, TakesTheNextParentIfOneIsUnusable) {
  const std::string good = path_ + "/good";
  const std::string long_name = path_ + "/" + std::string(90, 'x');
  const auto made = plan_job_dir({write("file", 0600), long_name, good}, kJobId, 1);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->substr(0, good.size()), good);
  EXPECT_LT(rendezvous_path(*made).size(), 108u);
}

TEST(JobDirParents, RuntimeFolderFirst) {
  EXPECT_THAT(job_dir_parents("/run/user/5", 5),
              ElementsAre("/run/user/5/hvdrun", "/tmp/hvdrun-5", "/var/tmp/hvdrun-5"));
  EXPECT_THAT(job_dir_parents("", 5), ElementsAre("/tmp/hvdrun-5", "/var/tmp/hvdrun-5"));
  EXPECT_THAT(job_dir_parents("relative", 5), ElementsAre("/tmp/hvdrun-5", "/var/tmp/hvdrun-5"));
}

// --- worker environment

TEST(WorkerSpec, LaterLayersWinAndAgentAddsItsOwn) {
  SpawnContext context;
  context.node_env = {{"PATH", "/node"}, {"A", "node"}, {"B", "node"}, {"GRPC_TRACE", "all"}};
  context.executable = "/bin/echo";
  context.job_dir = "/run/job";
  const auto set = [](v1::EnvVar* variable, const char* name, const char* value) {
    variable->set_name(name);
    variable->set_value(value);
  };
  set(context.hello.add_launcher_env(), "A", "launcher");
  set(context.hello.add_user_env(), "C", "user");
  context.hello.add_argv("echo");
  context.hello.set_cwd("/work");
  v1::Spawn spawn;
  set(spawn.add_env(), "MASTER_PORT", "61000");
  set(spawn.add_env_if_unset(), "B", "unset");
  set(spawn.add_env_if_unset(), "OMP_NUM_THREADS", "1");
  v1::Spawn::Worker* worker = spawn.add_workers();
  worker->set_rank(3);
  set(worker->add_env(), "RANK", "3");
  const auto parts = make_shim_spawns(context, spawn);
  ASSERT_EQ(parts.size(), 1U);
  const v1::ShimSpawn& made = parts.front();
  EXPECT_FALSE(made.more());
  ASSERT_EQ(made.workers_size(), 1);
  EnvList env;
  for (const auto& variable : made.workers(0).env())
    env.emplace_back(variable.name(), variable.value());
  const EnvList expected = {{"A", "launcher"},
                            {"B", "node"},
                            {"C", "user"},
                            {"GRPC_TRACE", "all"},
                            {"HVDRUN_RENDEZVOUS", "/run/job/rendezvous.sock"},
                            {"MASTER_PORT", "61000"},
                            {"OMP_NUM_THREADS", "1"},
                            {"PATH", "/node"},
                            {"PWD", "/work"},
                            {"RANK", "3"},
                            {"TORCHELASTIC_ERROR_FILE", "/run/job/error.3.json"}};
  EXPECT_EQ(env, expected);
  EXPECT_EQ(made.workers(0).executable(), "/bin/echo");
  EXPECT_EQ(made.workers(0).cwd(), "/work");
}

TEST(WorkerSpec, ManyWorkersWithALargeEnvironmentTakeSeveralFrames) {
  SpawnContext context{{{"BIG", std::string(1U << 20U, 'x')}}, {}, "/bin/true", "/run/job"};
  v1::Spawn spawn;
  for (std::uint32_t rank = 0; rank < 40; ++rank) spawn.add_workers()->set_rank(rank);
  std::uint32_t next_rank = 0;
  const auto parts = make_shim_spawns(context, spawn);
  for (const v1::ShimSpawn& part : parts) {
    EXPECT_LT(part.ByteSizeLong(), kMaxFrameBytes);
    EXPECT_EQ(part.more(), &part != &parts.back());
    for (const auto& worker : part.workers()) EXPECT_EQ(worker.rank(), next_rank++);
  }
  EXPECT_EQ(next_rank, 40U);
}

// --- preflight

TEST_F(Executable, PreflightUsesTheWorkersPathAndCountsGpus) {
  write("tool", 0755);
  fs::create_directories(path_ + "/gpus/0000:01:00.0");
  fs::create_directories(path_ + "/gpus/0000:02:00.0");
  v1::Hello hello;
  hello.add_argv("tool");
  hello.set_cwd(path_);
  PreflightPaths paths;
  paths.gpus = path_ + "/gpus";
  const v1::HelloReply reply = preflight(hello, {{"PATH", path_}}, paths);
  EXPECT_EQ(reply.executable(), path_ + "/tool");
  EXPECT_TRUE(reply.cwd_ok());
  EXPECT_EQ(reply.num_gpus(), 2u);
  EXPECT_FALSE(reply.boot_id().empty());
  EXPECT_NE(reply.network_namespace(), 0u);
  EXPECT_GT(reply.interfaces_size(), 0);
  EXPECT_EQ(count_gpus(path_ + "/none"), 0u);
}

// --- spool and output queue

using SpoolTest = TemporaryFolder;

TEST_F(SpoolTest, GivesBackInOrderAcrossFilesAndLeavesNoName) {
  Spool spool(path_, 1u << 30);
  const std::string filler(1u << 20, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(spool.append(std::to_string(i) + filler));
  EXPECT_TRUE(fs::is_empty(path_));
  for (int i = 0; i < 20; ++i) {
    const auto record = spool.take();
    ASSERT_TRUE(record);
    EXPECT_EQ(*record, std::to_string(i) + filler);
  }
  EXPECT_TRUE(spool.is_empty());
  EXPECT_EQ(spool.num_bytes(), 0u);
  EXPECT_FALSE(spool.take());
}

TEST_F(SpoolTest, RefusesBeyondTheCapAndGoesOnAfterReading) {
  Spool spool(path_, 100);
  EXPECT_TRUE(spool.append(std::string(80, 'a')));
  EXPECT_FALSE(spool.append(std::string(80, 'b')));
  EXPECT_EQ(spool.take()->size(), 80u);
  EXPECT_TRUE(spool.append(std::string(80, 'c')));
  EXPECT_EQ(*spool.take(), std::string(80, 'c'));
}

TEST(SpoolWithoutFolder, RefusesInsteadOfFailing) {
  Spool spool("/no/such/folder", 1000);
  EXPECT_FALSE(spool.append("x"));
  EXPECT_TRUE(spool.is_empty());
}

v1::LogChunk make_chunk(std::uint32_t rank, std::string data, bool eof = false) {
  v1::LogChunk chunk;
  chunk.set_rank(rank);
  chunk.set_stream(v1::STREAM_STDOUT);
  chunk.set_data(std::move(data));
  chunk.set_eof(eof);
  return chunk;
}

TEST_F(SpoolTest, QueueSendsNothingWithoutCreditAndSplitsToFit) {
  OutputQueue queue(Spool(path_, 0), {});
  queue.push(make_chunk(0, "hello", true));
  EXPECT_EQ(queue.next_batch().chunks_size(), 0);
  queue.add_credit(2);
  const auto first = queue.next_batch();
  ASSERT_EQ(first.chunks_size(), 1);
  EXPECT_EQ(first.chunks(0).data(), "he");
  EXPECT_FALSE(first.chunks(0).eof());
  queue.add_credit(100);
  const auto second = queue.next_batch();
  ASSERT_EQ(second.chunks_size(), 1);
  EXPECT_EQ(second.chunks(0).data(), "llo");
  EXPECT_TRUE(second.chunks(0).eof());
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(queue.memory_bytes(), 0u);
}

TEST_F(SpoolTest, QueueKeepsTheOrderThroughTheSpool) {
  OutputQueue::Limits limits;
  limits.memory_bytes = 2000;
  limits.batch_bytes = 1000;
  OutputQueue queue(Spool(path_, 1u << 20), limits);
  std::string sent;
  for (int i = 0; i < 500; ++i) {
    const std::string line = std::to_string(i) + "\n";
    sent += line;
    queue.push(make_chunk(0, line));
  }
  EXPECT_GT(queue.spooled_bytes(), 0u);
  EXPECT_LE(queue.memory_bytes(), 2000u);
  queue.add_credit(1u << 20);
  std::string received;
  while (!queue.is_empty()) {
    const v1::OutputReply batch = queue.next_batch();
    for (const auto& chunk : batch.chunks()) received += chunk.data();
  }
  EXPECT_EQ(received, sent);
}

TEST_F(SpoolTest, QueueCountsWhatItDropsAndKeepsTheEnd) {
  OutputQueue::Limits limits;
  limits.memory_bytes = 300;
  OutputQueue queue(Spool(path_, 0), limits);
  queue.push(make_chunk(0, std::string(100, 'a')));
  queue.push(make_chunk(0, std::string(100, 'b')));
  queue.push(make_chunk(1, std::string(200, 'c')));
  queue.push(make_chunk(0, std::string(50, 'd'), true));
  queue.add_credit(1000);
  std::uint64_t dropped = 0;
  bool is_ended = false;
  std::string data;
  while (!queue.is_empty()) {
    const v1::OutputReply batch = queue.next_batch();
    for (const auto& chunk : batch.chunks()) {
      data += chunk.data();
      dropped += chunk.dropped();
      is_ended |= chunk.eof();
    }
  }
  EXPECT_EQ(data, std::string(100, 'a'));
  EXPECT_EQ(dropped, 150u);
  EXPECT_TRUE(is_ended);
}

// --- store relay

struct FakeCall : StoreCall {
  void answer(const v1::StoreReply& reply) override {
    ++num_answers;
    status = reply.status();
    text = reply.text();
  }
  int num_answers = 0;
  v1::StoreStatus status = v1::STORE_STATUS_OK;
  std::string text;
};

v1::StoreRequest make_get(const std::string& key) {
  v1::StoreRequest request;
  request.mutable_get()->set_key(key);
  return request;
}

TEST(StoreRelayTest, AnswersByIdOnce) {
  std::vector<v1::StoreRequest> sent;
  StoreRelay relay([&sent](v1::StoreRequest request) { sent.push_back(std::move(request)); });
  FakeCall a;
  FakeCall b;
  relay.start(make_get("a"), &a);
  relay.start(make_get("b"), &b);
  ASSERT_EQ(sent.size(), 2u);
  v1::StoreReply reply;
  reply.set_id(sent[1].id());
  reply.set_status(v1::STORE_STATUS_TIMEOUT);
  relay.take_reply(reply);
  relay.take_reply(reply);
  EXPECT_EQ(a.num_answers, 0);
  EXPECT_EQ(b.num_answers, 1);
  EXPECT_EQ(b.status, v1::STORE_STATUS_TIMEOUT);
}

TEST(StoreRelayTest, CancelTellsTheLauncherAndEndAnswersAll) {
  std::vector<v1::StoreRequest> sent;
  StoreRelay relay([&sent](v1::StoreRequest request) { sent.push_back(std::move(request)); });
  FakeCall gone;
  FakeCall waiting;
  FakeCall late;
  const auto id = relay.start(make_get("a"), &gone);
  relay.start(make_get("b"), &waiting);
  relay.cancel(id);
  relay.cancel(id);
  EXPECT_EQ(sent.back().cancel(), id);
  EXPECT_EQ(gone.num_answers, 1);
  relay.end_all("the job is ending");
  relay.start(make_get("c"), &late);
  EXPECT_EQ(waiting.text, "the job is ending");
  EXPECT_EQ(late.status, v1::STORE_STATUS_CANCELLED);
  EXPECT_EQ(relay.num_pending(), 0u);
  EXPECT_EQ(sent.size(), 3u);
}

TEST(StoreRelayTest, RefusesWhatIsTooLarge) {
  EXPECT_FALSE(check_store_request(make_get(std::string(256, 'k'))));
  EXPECT_TRUE(check_store_request(make_get(std::string(257, 'k'))));
  EXPECT_TRUE(check_store_request(make_get("")));
  v1::StoreRequest put;
  put.mutable_put()->set_key("k");
  put.mutable_put()->set_value(std::string(1u << 20, 'v'));
  EXPECT_FALSE(check_store_request(put));
  put.mutable_put()->mutable_value()->push_back('v');
  EXPECT_TRUE(check_store_request(put));
}

// --- states

TEST(JobStateTable, TheLaunchersEndAlwaysLeadsOut) {
  for (int i = 0; i < static_cast<int>(JobState::kLeaving); ++i) {
    const JobStep step = job_step(static_cast<JobState>(i), JobEvent::kStreamEnd);
    EXPECT_TRUE(step.next == JobState::kLeaving || step.next == JobState::kClosing) << i;
    EXPECT_NE(step.action, JobAction::kNone) << i;
  }
}

TEST(JobStateTable, NormalLife) {
  JobState state = JobState::kNew;
  for (const JobEvent event : {JobEvent::kHello, JobEvent::kSpawn, JobEvent::kFinished,
                               JobEvent::kShimGone, JobEvent::kBye}) {
    const JobStep step = job_step(state, event);
    EXPECT_NE(step.action, JobAction::kRefuse) << job_event_name(event);
    state = step.next;
  }
  EXPECT_EQ(state, JobState::kClosing);
}

TEST(JobStateTable, ShimThatDiesUnderWorkersIsReported) {
  EXPECT_EQ(job_step(JobState::kRunning, JobEvent::kShimGone).action, JobAction::kReportLost);
  EXPECT_EQ(job_step(JobState::kFinished, JobEvent::kShimGone).action, JobAction::kNone);
}

// --- fabric

// 0 or the errno of a plain or reusing bind, by a socket of its own.
int try_bind(std::uint16_t port, bool is_reusing, bool is_listening) {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (is_reusing) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return errno;
  if (is_listening && listen(socket.get(), 1) != 0) return errno;
  return 0;
}

TEST(Fabric, ReservedPortIsOnlyForWhoeverReusesIt) {
  const auto reservation = FabricReservation::make(61000, 65535, 1234);
  ASSERT_TRUE(reservation);
  EXPECT_EQ(try_bind(reservation->port(), false, true), EADDRINUSE);
  {
    const auto listening = reservation->listen();
    ASSERT_TRUE(listening);
    EXPECT_EQ(try_bind(reservation->port(), true, true), EADDRINUSE);
  }
  EXPECT_EQ(try_bind(reservation->port(), false, false), EADDRINUSE);
  EXPECT_EQ(try_bind(reservation->port(), true, true), 0);
}

TEST(Fabric, SecondReservationTakesTheNextPort) {
  const auto first = FabricReservation::make(61000, 65000, 77);
  ASSERT_TRUE(first);
  const auto port = first->port();
  const auto next = FabricReservation::make(port, static_cast<std::uint16_t>(port + 3), 0);
  ASSERT_TRUE(next);
  EXPECT_GT(next->port(), port);
  const auto none = FabricReservation::make(port, port, 0);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("in use"));
  EXPECT_FALSE(FabricReservation::make(0, 10, 0));
  EXPECT_FALSE(FabricReservation::make(20, 10, 0));
}

class FabricCheck : public ::testing::Test {
 protected:
  std::uint16_t open() {
    v1::FabricListen request;
    request.set_port_low(61000);
    request.set_port_high(65535);
    request.set_nonce(nonce_);
    request.set_listen(true);
    return static_cast<std::uint16_t>(port_.open(request, kJobId).port());
  }
  v1::FabricProbeReply probe(const std::vector<std::string>& candidates, std::uint16_t port,
                             const std::string& nonce, const std::string& job = kJobId) {
    v1::FabricProbe request;
    for (const auto& candidate : candidates) request.add_candidates(candidate);
    request.set_port(port);
    request.set_nonce(nonce);
    request.set_timeout_ms(300);
    v1::FabricProbeReply reply;
    boost::asio::co_spawn(loop_, probe_fabric(request, job),
                          [this, &reply](const std::exception_ptr&, v1::FabricProbeReply result) {
                            reply = std::move(result);
                            loop_.stop();
                          });
    loop_.restart();
    loop_.run();
    return reply;
  }
  const std::string nonce_ = "0123456789abcdef";
  Loop loop_;
  MasterPort port_{loop_};
};

TEST_F(FabricCheck, ReachesNode0AndTellsItsOwnAddress) {
  const auto port = open();
  ASSERT_NE(port, 0);
  const auto reply = probe({"127.0.0.1", "127.0.0.9", "nonsense"}, port, nonce_);
  ASSERT_EQ(reply.results_size(), 3);
  EXPECT_TRUE(reply.results(0).reached()) << reply.results(0).error();
  EXPECT_EQ(reply.results(0).local_address(), "127.0.0.1");
  EXPECT_EQ(reply.results(0).interface(), "lo");
  EXPECT_TRUE(reply.results(1).reached());
  EXPECT_FALSE(reply.results(2).reached());
  EXPECT_EQ(reply.results(2).error(), "not a numeric address");
}

TEST_F(FabricCheck, WrongNonceOrAnotherJobIsNotNode0) {
  const auto port = open();
  const auto wrong = probe({"127.0.0.1"}, port, "fedcba9876543210");
  EXPECT_FALSE(wrong.results(0).reached());
  EXPECT_EQ(wrong.results(0).error(), "answered by another program");
  const auto other = probe({"127.0.0.1"}, port, nonce_, std::string(32, 'f'));
  EXPECT_EQ(other.results(0).error(), "answered by another program");
}

TEST_F(FabricCheck, AfterTheCheckNobodyListensButThePortIsHeld) {
  const auto port = open();
  port_.end_check();
  const auto reply = probe({"127.0.0.1"}, port, nonce_);
  EXPECT_EQ(reply.results(0).error(), "connection refused");
  EXPECT_EQ(try_bind(port, false, false), EADDRINUSE);
  EXPECT_EQ(try_bind(port, true, true), 0);
}

TEST_F(FabricCheck, SilentListenerIsNoAnswer) {
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(silent.get(), 1), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto reply = probe({"127.0.0.1"}, ntohs(address.sin_port), nonce_);
  EXPECT_EQ(reply.results(0).error(), "no answer in 0.3 s");
}

TEST(FabricAnswer, IsParsedBackAndOnlyForTheJob) {
  EXPECT_EQ(parse_fabric_answer(fabric_answer("job", "10.0.0.1"), "job"), "10.0.0.1");
  EXPECT_EQ(parse_fabric_answer(fabric_answer("job", "10.0.0.1"), "jo"), "");
  EXPECT_EQ(parse_fabric_answer("hvdrun job 10.0.0.1", "job"), "");
  EXPECT_EQ(parse_fabric_answer("HTTP/1.1 400 Bad Request\r\n", "job"), "");
}

}  // namespace
}  // namespace hvd
