// The built hvd-agent as a launcher meets it: over one socket and over two pipes, with real
// workers.
#include "tests/support/agent_process.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using namespace std::chrono_literals;
using test::AgentProcessTest;
using test::is_gone;
using test::is_gone_within;
using test::socket_pair;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace hvd
