// The built hvd-agent as a launcher meets it: over one socket and over two pipes, with real
// workers.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "hvdrun/v1/agent.grpc.pb.h"
#include "hvdrun/v1/rendezvous.grpc.pb.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

// One for each run: an agent ends whatever carries its job's mark, of another run as well.
const std::string kJobId = fmt::format("feedbeef0123456789abcdef{:08x}", getpid());
constexpr auto kTestLimit = 20s;

std::pair<UniqueFd, UniqueFd> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void copy(UniqueFd from, UniqueFd to) {
  std::array<char, 65536> buffer;
  ssize_t n = 0;
  while ((n = read(from.get(), buffer.data(), buffer.size())) > 0) {
    if (write(to.get(), buffer.data(), static_cast<size_t>(n)) != n) break;
  }
  shutdown(to.get(), SHUT_WR);
}

// The calls of a launcher on one agent, blocking, each with the test's limit.
class AgentProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }  // the bridge outlives the agent

  void TearDown() override {
    disconnect();
    if (pid_ > 0) {
      EXPECT_EQ(wait_for_agent(), 0);
    }
    for (auto& thread : bridge_) thread.join();
    EXPECT_FALSE(std::filesystem::exists(job_dir_)) << job_dir_;
  }

  void start_process(int in, int out, const std::vector<std::string>& extra) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    std::vector<std::string> words = {HVD_AGENT_PATH, "--stdio"};
    words.insert(words.end(), extra.begin(), extra.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, HVD_AGENT_PATH, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  void start_on_socket(const std::vector<std::string>& extra = {}) {
    auto [ours, theirs] = socket_pair();
    start_process(theirs.get(), theirs.get(), extra);
    theirs.reset();
    connect(std::move(ours));
  }

  // Pipes as a program in between would hold them; a bridge makes one socket of them for the
  // client.
  void start_on_pipes() {
    auto [agent_in, to_agent] = make_pipe();
    auto [from_agent, agent_out] = make_pipe();
    start_process(agent_in.get(), agent_out.get(), {});
    agent_in.reset();
    agent_out.reset();
    auto [ours, inner] = socket_pair();
    UniqueFd second(fcntl(inner.get(), F_DUPFD_CLOEXEC, 0));
    bridge_.emplace_back(copy, std::move(inner), std::move(to_agent));
    bridge_.emplace_back(copy, std::move(from_agent), std::move(second));
    connect(std::move(ours));
  }

  void connect(UniqueFd socket) {
    char byte = 0;
    while (read(socket.get(), &byte, 1) == 1 && byte != '\n') ready_line_ += byte;
    fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomInsecureChannelFromFd("agent", socket.release(), arguments);
    stub_ = v1::AgentService::NewStub(channel_);
    control_context_ = std::make_unique<grpc::ClientContext>();
    control_context_->set_deadline(std::chrono::system_clock::now() + kTestLimit);
    control_ = stub_->Control(control_context_.get());
    output_context_ = std::make_unique<grpc::ClientContext>();
    output_context_->set_deadline(std::chrono::system_clock::now() + kTestLimit);
    output_ = stub_->Output(output_context_.get());
  }

  void disconnect() {
    if (control_context_) control_context_->TryCancel();
    if (output_context_) output_context_->TryCancel();
    control_.reset();
    output_.reset();
    control_context_.reset();  // a context holds its call, and that the channel
    output_context_.reset();
    stub_.reset();
    channel_.reset();
  }

  int wait_for_agent() {
    int status = 0;
    EXPECT_EQ(waitpid(std::exchange(pid_, -1), &status, 0) > 0, true);
    return status;
  }

  v1::HelloReply say_hello(const std::vector<std::string>& argv,
                           const std::function<void(v1::Hello*)>& change = {}) {
    v1::ControlRequest request;
    v1::Hello* hello = request.mutable_hello();
    hello->set_job_id(kJobId);
    hello->set_node(3);
    hello->set_lease_ms(10000);
    hello->set_grace_ms(500);
    hello->set_heartbeat_ms(100);
    hello->set_spool_cap_bytes(64u << 20);
    hello->set_umask(027);
    hello->set_cwd("/tmp");
    for (const auto& word : argv) hello->add_argv(word);
    if (change) change(hello);
    EXPECT_TRUE(control_->Write(request));
    const v1::ControlReply reply = next();
    EXPECT_TRUE(reply.has_hello()) << reply.ShortDebugString();
    job_dir_ = reply.hello().job_dir();
    return reply.hello();
  }

  void spawn(std::uint32_t num_workers = 1) {
    v1::ControlRequest request;
    const auto set = [](v1::EnvVar* variable, std::string name, std::string value) {
      variable->set_name(std::move(name));
      variable->set_value(std::move(value));
    };
    set(request.mutable_spawn()->add_env(), "HVDRUN_JOB_ID", kJobId);
    set(request.mutable_spawn()->add_env(), "HVDRUN_NODE", "3");
    for (std::uint32_t rank = 0; rank < num_workers; ++rank) {
      v1::Spawn::Worker* worker = request.mutable_spawn()->add_workers();
      worker->set_rank(rank);
      worker->set_local_rank(rank);
      set(worker->add_env(), "RANK", std::to_string(rank));
    }
    EXPECT_TRUE(control_->Write(request));
  }

  v1::ControlReply next() {
    v1::ControlReply reply;
    if (!control_->Read(&reply)) {
      const grpc::Status status = control_->Finish();
      ADD_FAILURE() << "control ended: " << status.error_code() << " " << status.error_message();
    }
    return reply;
  }

  // Skips what comes before.
  v1::ControlReply next(v1::ControlReply::MessageCase kind) {
    while (!HasFailure()) {
      v1::ControlReply reply = next();
      if (reply.message_case() == kind) return reply;
    }
    return {};
  }

  void give_credit(std::uint64_t bytes) {
    v1::OutputRequest request;
    request.set_job_id(kJobId);
    request.set_credit(bytes);
    EXPECT_TRUE(output_->Write(request));
  }

  // Standard output of all ranks until so many streams have ended.
  std::string read_output(int num_streams) {
    std::string text;
    v1::OutputReply reply;
    while (num_streams > 0 && output_->Read(&reply)) {
      for (const auto& chunk : reply.chunks()) {
        if (chunk.stream() == v1::STREAM_STDOUT) text += chunk.data();
        num_dropped_ += chunk.dropped();
        num_streams -= chunk.eof() ? 1 : 0;
      }
    }
    EXPECT_EQ(num_streams, 0);
    return text;
  }

  void say_bye_and_expect_ok() {
    v1::ControlRequest request;
    request.mutable_bye();
    EXPECT_TRUE(control_->Write(request));
    v1::ControlReply reply;
    while (control_->Read(&reply)) {
    }
    const grpc::Status status = control_->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  pid_t pid_ = -1;
  std::string ready_line_;
  std::string job_dir_ = "/no/job";
  std::uint64_t num_dropped_ = 0;
  std::vector<std::thread> bridge_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> control_context_;
  std::unique_ptr<grpc::ClientContext> output_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ControlRequest, v1::ControlReply>> control_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::OutputRequest, v1::OutputReply>> output_;
};

// A process that has gone, a zombie included.
bool is_gone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.empty() || text.find(") Z ") != std::string::npos;
}

bool is_gone_within(pid_t pid, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!is_gone(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

TEST_F(AgentProcessTest, RunsAWorkerOverOneSocket) {
  start_on_socket();
  EXPECT_THAT(ready_line_, HasSubstr("HVDRUN1 ready "));
  const v1::HelloReply hello = say_hello({"sh", "-c", "echo hi; umask; exit 3"});
  EXPECT_EQ(hello.pid(), pid_);
  EXPECT_GT(hello.shim_pid(), 0);
  EXPECT_EQ(hello.executable_errno(), 0);
  EXPECT_TRUE(hello.cwd_ok());
  give_credit(1u << 20);
  spawn();
  EXPECT_GT(next(v1::ControlReply::kStarted).started().pid(), 0);
  EXPECT_EQ(read_output(2), "hi\n0027\n");
  const v1::ControlReply exited = next(v1::ControlReply::kExited);
  EXPECT_EQ(exited.exited().exited(), 3);
  EXPECT_TRUE(next(v1::ControlReply::kFinished).finished().clean());
  say_bye_and_expect_ok();
  EXPECT_EQ(wait_for_agent(), 0);
}

TEST_F(AgentProcessTest, RunsAWorkerOverTwoPipes) {
  start_on_pipes();
  EXPECT_THAT(ready_line_, HasSubstr("HVDRUN1 ready "));
  say_hello({"sh", "-c", "echo \"$RANK $PWD\"; exit 0"});
  give_credit(1u << 20);
  spawn(2);
  const std::string text = read_output(4);
  EXPECT_THAT(text, HasSubstr("0 /tmp\n"));
  EXPECT_THAT(text, HasSubstr("1 /tmp\n"));
  EXPECT_TRUE(next(v1::ControlReply::kFinished).finished().clean());
  say_bye_and_expect_ok();
}

TEST_F(AgentProcessTest, MarkerStandsInTheReadyLine) {
  start_on_socket({"--marker", "abc123"});
  EXPECT_THAT(ready_line_, HasSubstr("abc123 ready "));
}

TEST_F(AgentProcessTest, LauncherThatVanishesTakesTheWorkersWithIt) {
  start_on_socket();
  say_hello({"sleep", "600"});
  spawn(2);
  const pid_t first = next(v1::ControlReply::kStarted).started().pid();
  const pid_t second = next(v1::ControlReply::kStarted).started().pid();
  disconnect();
  EXPECT_TRUE(is_gone_within(first, 1000ms));
  EXPECT_TRUE(is_gone_within(second, 1000ms));
}

TEST_F(AgentProcessTest, LauncherThatVanishesBehindPipesTakesTheWorkersWithIt) {
  start_on_pipes();
  say_hello({"sleep", "600"});
  spawn();
  const pid_t worker = next(v1::ControlReply::kStarted).started().pid();
  disconnect();
  EXPECT_TRUE(is_gone_within(worker, 1000ms));
}

TEST_F(AgentProcessTest, LauncherThatVanishesBeforeTheHelloEndsTheAgent) {
  auto [ours, theirs] = socket_pair();
  start_process(theirs.get(), theirs.get(), {});
  theirs.reset();
  ours.reset();
  const auto begin = std::chrono::steady_clock::now();
  wait_for_agent();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
}

TEST_F(AgentProcessTest, LeaseWithoutHeartbeatEndsTheWorkers) {
  start_on_socket();
  say_hello({"sleep", "600"}, [](v1::Hello* hello) { hello->set_lease_ms(400); });
  spawn();
  const pid_t worker = next(v1::ControlReply::kStarted).started().pid();
  EXPECT_TRUE(is_gone_within(worker, 2000ms));
  EXPECT_EQ(wait_for_agent(), 0);
}

TEST_F(AgentProcessTest, HeartbeatsComeBackAndKeepTheLease) {
  start_on_socket();
  say_hello({"sleep", "600"}, [](v1::Hello* hello) { hello->set_lease_ms(400); });
  spawn();
  const pid_t worker = next(v1::ControlReply::kStarted).started().pid();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    v1::ControlRequest request;
    request.mutable_heartbeat()->set_sequence(i);
    ASSERT_TRUE(control_->Write(request));
    const v1::ControlReply reply = next(v1::ControlReply::kHeartbeat);
    EXPECT_EQ(reply.heartbeat().sequence(), i);
    EXPECT_GT(reply.heartbeat().agent_boottime_ns(), 0);
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_FALSE(is_gone(worker));
}

TEST_F(AgentProcessTest, StopEndsTheWorkersAndTellsOfIt) {
  start_on_socket();
  say_hello({"sleep", "600"});
  spawn();
  next(v1::ControlReply::kStarted);
  v1::ControlRequest request;
  request.mutable_stop()->set_grace_ms(2000);
  ASSERT_TRUE(control_->Write(request));
  const v1::ControlReply exited = next(v1::ControlReply::kExited);
  EXPECT_EQ(exited.exited().signalled(), SIGTERM);
  EXPECT_TRUE(exited.exited().stopped());
  EXPECT_TRUE(next(v1::ControlReply::kFinished).finished().clean());
  say_bye_and_expect_ok();
}

TEST_F(AgentProcessTest, ShimThatDiesIsReportedAndLeavesNothing) {
  start_on_socket();
  const v1::HelloReply hello = say_hello({"sh", "-c", "setsid sleep 601 & echo $!; wait"});
  give_credit(1u << 20);
  spawn();
  next(v1::ControlReply::kStarted);
  v1::OutputReply output;
  ASSERT_TRUE(output_->Read(&output));
  const pid_t escaped = std::stoi(output.chunks(0).data());
  ASSERT_EQ(kill(hello.shim_pid(), SIGKILL), 0);
  EXPECT_THAT(next(v1::ControlReply::kNotice).notice().text(), HasSubstr("rank 0"));
  v1::ControlReply reply;
  while (control_->Read(&reply)) {
  }
  const grpc::Status status = control_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("hvd-shim died"));
  EXPECT_TRUE(is_gone(escaped));
}

TEST_F(AgentProcessTest, ShimThatHangsIsKilledAndReported) {
  start_on_socket();
  const v1::HelloReply hello =
      say_hello({"sleep", "600"}, [](v1::Hello* changed) { changed->set_lease_ms(1000); });
  spawn();
  next(v1::ControlReply::kStarted);
  ASSERT_EQ(kill(hello.shim_pid(), SIGSTOP), 0);
  for (int i = 0; i < 30 && !is_gone(hello.shim_pid()); ++i) {
    v1::ControlRequest request;
    request.mutable_heartbeat()->set_sequence(1);
    control_->Write(request);
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_TRUE(is_gone(hello.shim_pid()));
}

TEST_F(AgentProcessTest, SlowLauncherLosesNothingAndControlGoesOn) {
  start_on_socket();
  say_hello({"sh", "-c", "seq 1 2000000"});
  spawn();
  next(v1::ControlReply::kStarted);
  // 15 MB without a credit: the worker ends all the same.
  EXPECT_EQ(next(v1::ControlReply::kExited).exited().exited(), 0);
  give_credit(1u << 30);
  const std::string text = read_output(2);
  EXPECT_EQ(num_dropped_, 0u);
  EXPECT_EQ(text.size(), 14888896u);
  EXPECT_EQ(text.substr(text.size() - 8), "2000000\n");
  say_bye_and_expect_ok();
}

TEST_F(AgentProcessTest, OutputBeyondTheSpoolIsCounted) {
  start_on_socket();
  say_hello({"sh", "-c", "seq 1 2000000"},
            [](v1::Hello* hello) { hello->set_spool_cap_bytes(1u << 20); });
  spawn();
  EXPECT_EQ(next(v1::ControlReply::kExited).exited().exited(), 0);
  give_credit(1u << 30);
  const std::string text = read_output(2);
  EXPECT_GT(num_dropped_, 0u);
  EXPECT_EQ(text.size() + num_dropped_, 14888896u);
  say_bye_and_expect_ok();
}

TEST_F(AgentProcessTest, PreflightTellsWhatIsMissing) {
  start_on_socket();
  const v1::HelloReply hello = say_hello({"no-such-program"}, [](v1::Hello* changed) {
    changed->set_cwd("/no/such/folder");
    changed->mutable_fabric_listen()->set_port_low(61000);
    changed->mutable_fabric_listen()->set_port_high(65535);
  });
  EXPECT_FALSE(hello.cwd_ok());
  EXPECT_EQ(hello.cwd_errno(), ENOENT);
  EXPECT_EQ(hello.executable_errno(), ENOENT);
  EXPECT_GE(hello.fabric_listen().port(), 61000u);
  say_bye_and_expect_ok();
}

TEST_F(AgentProcessTest, RequestBeforeTheHelloIsRefused) {
  start_on_socket();
  spawn();
  v1::ControlReply reply;
  EXPECT_FALSE(control_->Read(&reply));
  const grpc::Status status = control_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("hello"));
}

// A worker's side of the rendezvous socket.
class Rendezvous : public AgentProcessTest {
 protected:
  void start_job() {
    start_on_socket();
    say_hello({"sleep", "600"});
    spawn();
    next(v1::ControlReply::kStarted);
    worker_channel_ = grpc::CreateChannel("unix:" + job_dir_ + "/rendezvous.sock",
                                          grpc::InsecureChannelCredentials());
    worker_ = v1::Rendezvous::NewStub(worker_channel_);
  }
  void reply_to(const v1::StoreRequest& asked, v1::StoreStatus status, const std::string& value) {
    v1::ControlRequest request;
    request.mutable_store_reply()->set_id(asked.id());
    request.mutable_store_reply()->set_status(status);
    request.mutable_store_reply()->set_value(value);
    request.mutable_store_reply()->set_text("told by the launcher");
    EXPECT_TRUE(control_->Write(request));
  }
  static void limit(grpc::ClientContext* context, std::chrono::milliseconds time) {
    context->set_deadline(std::chrono::system_clock::now() + time);
  }
  std::shared_ptr<grpc::Channel> worker_channel_;
  std::unique_ptr<v1::Rendezvous::Stub> worker_;
};

TEST_F(Rendezvous, PutAndGetAreRelayed) {
  start_job();
  grpc::Status put_status;
  grpc::Status get_status;
  v1::GetReply got;
  std::thread worker([&] {
    grpc::ClientContext put_context;
    limit(&put_context, 5s);
    v1::PutRequest put;
    put.set_key("nccl-id");
    put.set_value(std::string(128, '\xff'));
    v1::PutReply put_reply;
    put_status = worker_->Put(&put_context, put, &put_reply);
    grpc::ClientContext get_context;
    limit(&get_context, 5s);
    v1::GetRequest get;
    get.set_key("nccl-id");
    get.set_generation(2);
    get_status = worker_->Get(&get_context, get, &got);
  });
  const auto put = next(v1::ControlReply::kStoreRequest).store_request();
  EXPECT_EQ(put.put().key(), "nccl-id");
  EXPECT_EQ(put.put().value().size(), 128u);
  reply_to(put, v1::STORE_STATUS_CONFLICT, "");
  const auto get = next(v1::ControlReply::kStoreRequest).store_request();
  EXPECT_EQ(get.get().generation(), 2u);
  EXPECT_GT(get.get().timeout_ms(), 4000);
  EXPECT_LE(get.get().timeout_ms(), 5500);  // gRPC sends whole steps of time
  reply_to(get, v1::STORE_STATUS_OK, "value");
  worker.join();
  EXPECT_EQ(put_status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(put_status.error_message(), "told by the launcher");
  EXPECT_TRUE(get_status.ok()) << get_status.error_message();
  EXPECT_EQ(got.value(), "value");
}

TEST_F(Rendezvous, CallerThatGivesUpIsCancelledAtTheLauncher) {
  start_job();
  std::thread worker([&] {
    grpc::ClientContext context;
    limit(&context, 200ms);
    v1::BarrierRequest barrier;
    barrier.set_name("start");
    barrier.set_size(2);
    v1::BarrierReply reply;
    EXPECT_EQ(worker_->Barrier(&context, barrier, &reply).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  });
  const auto barrier = next(v1::ControlReply::kStoreRequest).store_request();
  EXPECT_EQ(barrier.barrier().size(), 2u);
  worker.join();
  EXPECT_EQ(next(v1::ControlReply::kStoreRequest).store_request().cancel(), barrier.id());
}

TEST_F(Rendezvous, OpenCallEndsWithTheJob) {
  start_job();
  grpc::Status status;
  std::thread worker([&] {
    grpc::ClientContext context;
    limit(&context, 10s);
    v1::GetRequest get;
    get.set_key("never");
    v1::GetReply reply;
    status = worker_->Get(&context, get, &reply);
  });
  next(v1::ControlReply::kStoreRequest);
  v1::ControlRequest bye;
  bye.mutable_bye();
  control_->Write(bye);
  worker.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Rendezvous, RegistrationIsRelayedAndItsAnswerIsTheWorkers) {
  start_job();
  v1::RegisterReply reply;
  std::thread worker([&] {
    grpc::ClientContext context;
    limit(&context, 10s);
    v1::Registration registration;
    registration.set_rank(5);
    const grpc::Status status = worker_->Register(&context, registration, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(), "told by the launcher");
  });
  const auto asked = next(v1::ControlReply::kStoreRequest).store_request();
  EXPECT_EQ(asked.registration().registration().rank(), 5u);
  EXPECT_GT(asked.registration().timeout_ms(), 5000);
  reply_to(asked, v1::STORE_STATUS_MISMATCH, "");
  worker.join();
}

TEST_F(Rendezvous, BeatsReachTheLauncherAndALateWorkerHasItsProcessTold) {
  start_job();
  grpc::ClientContext context;
  limit(&context, 10s);
  const auto watch = worker_->Watch(&context);
  v1::WorkerBeat beat;
  beat.set_rank(0);
  beat.set_size(1);
  beat.set_period_ms(100);
  beat.set_step(7);
  EXPECT_TRUE(watch->Write(beat));
  auto beats = next(v1::ControlReply::kWorkerBeats).worker_beats();
  ASSERT_EQ(beats.beats_size(), 1);
  EXPECT_EQ(beats.beats(0).step(), 7u);
  EXPECT_EQ(beats.beats(0).pid(), getpid());  // who sent it is this process
  EXPECT_EQ(beats.beats(0).silent_ms(), 0);
  beats = next(v1::ControlReply::kWorkerBeats).worker_beats();
  ASSERT_EQ(beats.beats_size(), 1);
  EXPECT_GE(beats.beats(0).silent_ms(), 200);
  EXPECT_EQ(beats.beats(0).process_state().size(), 1u);
  watch->WritesDone();
  EXPECT_TRUE(watch->Finish().ok());
}

TEST_F(Rendezvous, AStopOfABrokenJobReachesTheWorkersBeforeTheSignal) {
  start_job();
  grpc::ClientContext context;
  limit(&context, 10s);
  const auto watch = worker_->Watch(&context);
  v1::WorkerBeat beat;
  beat.set_size(1);
  EXPECT_TRUE(watch->Write(beat));
  next(v1::ControlReply::kWorkerBeats);
  v1::ControlRequest dump;
  dump.mutable_worker_notice()->set_kind(v1::WorkerNotice::KIND_DUMP);
  EXPECT_TRUE(control_->Write(dump));
  v1::ControlRequest stop;
  stop.mutable_stop()->set_grace_ms(500);
  stop.mutable_stop()->set_reason("rank 3 was killed");
  stop.mutable_stop()->set_abort(true);
  EXPECT_TRUE(control_->Write(stop));
  v1::WorkerNotice notice;
  ASSERT_TRUE(watch->Read(&notice));
  EXPECT_EQ(notice.kind(), v1::WorkerNotice::KIND_DUMP);
  ASSERT_TRUE(watch->Read(&notice));
  EXPECT_EQ(notice.kind(), v1::WorkerNotice::KIND_ABORT);
  EXPECT_EQ(notice.reason(), "rank 3 was killed");
  EXPECT_EQ(next(v1::ControlReply::kExited).exited().signalled(), SIGTERM);
  EXPECT_TRUE(next(v1::ControlReply::kFinished).finished().clean());
  say_bye_and_expect_ok();
  EXPECT_FALSE(watch->Read(&notice));
  EXPECT_TRUE(watch->Finish().ok());
}

TEST_F(Rendezvous, AStopThatTheUserWantsIsNoAbort) {
  start_job();
  grpc::ClientContext context;
  limit(&context, 10s);
  const auto watch = worker_->Watch(&context);
  v1::WorkerBeat beat;
  beat.set_size(1);
  EXPECT_TRUE(watch->Write(beat));
  next(v1::ControlReply::kWorkerBeats);
  v1::ControlRequest stop;
  stop.mutable_stop()->set_grace_ms(500);
  EXPECT_TRUE(control_->Write(stop));
  EXPECT_TRUE(next(v1::ControlReply::kFinished).finished().clean());
  say_bye_and_expect_ok();
  v1::WorkerNotice notice;
  EXPECT_FALSE(watch->Read(&notice));
  EXPECT_TRUE(watch->Finish().ok());
}

TEST_F(Rendezvous, TooLargeAKeyIsRefusedOnTheNode) {
  start_job();
  grpc::ClientContext context;
  limit(&context, 5s);
  v1::GetRequest get;
  get.set_key(std::string(257, 'k'));
  v1::GetReply reply;
  const grpc::Status status = worker_->Get(&context, get, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("257 bytes"));
}

TEST_F(Rendezvous, WorkerCannotSpeakToTheAgentService) {
  start_job();
  const auto agent = v1::AgentService::NewStub(worker_channel_);
  grpc::ClientContext context;
  limit(&context, 5s);
  const auto call = agent->Control(&context);
  v1::ControlReply reply;
  EXPECT_FALSE(call->Read(&reply));
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace hvd
