// The built hvd-agent and the calls of a launcher on it, blocking, each with the test's limit. Its
// program is HVD_AGENT_PATH.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
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
#include "proto/v1.h"

namespace hvd::test {

// One for each run: an agent ends whatever carries its job's mark, of another run as well.
inline const std::string kJobId = fmt::format("feedbeef0123456789abcdef{:08x}", getpid());
inline constexpr auto kTestLimit = std::chrono::seconds(20);

inline std::pair<UniqueFd, UniqueFd> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

inline std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

inline void copy(UniqueFd from, UniqueFd to) {
  std::array<char, 65536> buffer;
  ssize_t n = 0;
  while ((n = read(from.get(), buffer.data(), buffer.size())) > 0) {
    if (write(to.get(), buffer.data(), static_cast<size_t>(n)) != n) break;
  }
  shutdown(to.get(), SHUT_WR);
}

// One launcher's calls on an agent, blocking, each with the test's limit.
class AgentCalls {
 public:
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

  v1::HelloReply say_hello(const std::vector<std::string>& argv,
                           const std::function<void(v1::Hello*)>& change = {}) {
    v1::ControlRequest request;
    v1::Hello* hello = request.mutable_hello();
    hello->set_job_id(job_id_);
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
    set(request.mutable_spawn()->add_env(), "HVDRUN_JOB_ID", job_id_);
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
    while (!::testing::Test::HasFailure()) {
      v1::ControlReply reply = next();
      if (reply.message_case() == kind) return reply;
    }
    return {};
  }

  void give_credit(std::uint64_t bytes) {
    v1::OutputRequest request;
    request.set_job_id(job_id_);
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

  std::string job_id_ = kJobId;
  pid_t shim_ = -1;  // for tests that need it
  std::string ready_line_;
  std::string job_dir_ = "/no/job";
  std::uint64_t num_dropped_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> control_context_;
  std::unique_ptr<grpc::ClientContext> output_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ControlRequest, v1::ControlReply>> control_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::OutputRequest, v1::OutputReply>> output_;
};

// Starts HVD_AGENT_PATH with these words and standard streams.
inline pid_t start_agent(std::vector<std::string> words, int in, int out, int err = STDERR_FILENO) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  words.insert(words.begin(), HVD_AGENT_PATH);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, HVD_AGENT_PATH, &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// An agent of one launcher, on a stream of this test's making.
class AgentProcessTest : public ::testing::Test, protected AgentCalls {
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

  void start_process(int in, int out, std::vector<std::string> extra) {
    extra.insert(extra.begin(), "--stdio");
    pid_ = start_agent(std::move(extra), in, out);
    ASSERT_GT(pid_, 0);
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

  int wait_for_agent() {
    int status = 0;
    EXPECT_EQ(waitpid(std::exchange(pid_, -1), &status, 0) > 0, true);
    return status;
  }

  pid_t pid_ = -1;
  std::vector<std::thread> bridge_;
};

// A process that has gone, a zombie included.
inline bool is_gone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.empty() || text.find(") Z ") != std::string::npos;
}

inline bool is_gone_within(pid_t pid, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!is_gone(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace hvd::test
