// Drives a real shim, in a forked child, over a socket pair, as the agent does.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/shim/frames.h"
#include "agent/shim/job_cgroup.h"
#include "agent/shim/proc.h"
#include "agent/shim/shim_main.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/shim.pb.h"

namespace hvd {

namespace fs = std::filesystem;
using hvdrun::v1::ExitReport;
using hvdrun::v1::FromShim;
using hvdrun::v1::ShimConfig;
using hvdrun::v1::ShimSpawn;
using hvdrun::v1::ToShim;
using hvdrun::v1::WorkerSpec;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Nanos kPatience = seconds(20);

inline std::string program(const std::string& name) { return HVDRUN_TEST_PROGRAMS "/" + name; }

inline int num_open_fds() {
  return static_cast<int>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

inline bool is_running(pid_t pid) {
  const auto stat = read_stat(pid);
  return stat && is_alive(*stat);
}

// What a shim has said so far.
struct Record {
  std::map<std::uint32_t, pid_t> started;
  std::map<std::uint32_t, ExitReport> exits;
  std::map<std::uint32_t, std::string> out;
  std::map<std::uint32_t, int> num_ends;
  std::map<std::uint32_t, std::string> pmi;
  std::vector<std::string> notices;
  std::optional<hvdrun::v1::Finished> finished;
  std::uint64_t unacknowledged = 0;
  std::uint64_t pong = 0;
  std::uint64_t input_taken = 0;
  bool is_input_closed = false;
  std::optional<hvdrun::v1::Signalled> signalled;
  int num_exit_reports = 0;
  pid_t pid = 0;
  std::string containment;
  bool has_ended = false;  // end of file
};

class ShimTest : public testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = num_open_fds();
    char name[] = "/tmp/hvdrun-shim-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    fs::create_directory(root_ / "job");
    config_.set_job_id("shim-test-" + root_.filename().string());
    config_.set_node(1);
    config_.set_lease_ms(60'000);
    config_.set_grace_ms(300);
    config_.set_verify_ms(5'000);
    config_.set_drain_ms(200);
    config_.set_job_dir(root_ / "job");
    config_.set_log_window(1 << 20);
  }

  void TearDown() override {
    socket_.reset();
    if (shim_ > 0) {
      EXPECT_TRUE(reap_shim(kPatience)) << "the shim does not leave";
      EXPECT_FALSE(fs::exists(root_ / "job")) << "the shim leaves the job's folder";
    }
    fs::remove_all(root_);
    for (const auto& [rank, pid] : seen.started) EXPECT_FALSE(is_running(pid)) << "rank " << rank;
    EXPECT_EQ(num_open_fds(), fds_before_);
  }

  // Null: a set-uid program can be made here.
  [[nodiscard]] const char* why_no_set_uid() const {
    struct statvfs file_system {};
    if (geteuid() != 0) return "making a set-uid program needs root";
    const bool is_nosuid =
        statvfs(root_.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOSUID) != 0;
    return is_nosuid ? "/tmp is mounted nosuid" : nullptr;
  }

  void start_shim() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    shim_ = fork();
    if (shim_ == 0) {
      if (user_ != 0 && (setgid(user_) != 0 || setuid(user_) != 0)) _exit(96);
      _exit(run_shim(ends[1]));
    }
    close(ends[1]);
    socket_.reset(ends[0]);
    ToShim message;
    *message.mutable_config() = config_;
    send(message);
    ASSERT_TRUE(wait_until([&] { return seen.pid > 0; }));
    EXPECT_EQ(seen.pid, shim_);
  }

  void send(const ToShim& message) {
    const std::string frame = encode_frame(message);
    ASSERT_EQ(::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(frame.size()));
  }

  WorkerSpec& add(const std::string& executable, const std::vector<std::string>& arguments = {}) {
    WorkerSpec& spec = *spawn_.add_workers();
    spec.set_rank(static_cast<std::uint32_t>(spawn_.workers_size()) - 1);
    spec.set_executable(executable);
    spec.add_argv(executable);
    for (const std::string& argument : arguments) spec.add_argv(argument);
    set_env(spec, "HVDRUN_JOB_ID", config_.job_id());
    set_env(spec, "HVDRUN_NODE", std::to_string(config_.node()));
    set_env(spec, "PATH", "/usr/bin:/bin");
    spec.set_cwd(root_);
    return spec;
  }
  WorkerSpec& add_shell(const std::string& script) { return add("/bin/sh", {"-c", script}); }

  static void set_env(WorkerSpec& spec, const std::string& name, const std::string& value) {
    auto& variable = *spec.add_env();
    variable.set_name(name);
    variable.set_value(value);
  }

  void spawn() {
    ToShim message;
    *message.mutable_spawn() = spawn_;
    send(message);
  }
  void start_all() {
    start_shim();
    spawn();
  }
  // Every worker has been executed and has printed this.
  void await_output(const std::string& text) {
    ASSERT_TRUE(wait_until([&] {
      for (const WorkerSpec& spec : spawn_.workers()) {
        if (seen.out[spec.rank()].find(text) == std::string::npos) return false;
      }
      return true;
    }));
  }
  void stop(Nanos grace, int signal = 0) {
    ToShim message;
    message.mutable_stop()->set_grace_ms(std::chrono::duration_cast<milliseconds>(grace).count());
    message.mutable_stop()->set_signal(signal);
    send(message);
  }
  void acknowledge(std::uint64_t bytes) {
    ToShim message;
    message.mutable_log_ack()->set_bytes(bytes);
    const std::string frame = encode_frame(message);
    // The shim may have finished and left since it sent those bytes: no error, as for the agent.
    if (::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) {
      EXPECT_EQ(errno, EPIPE);
    }
    seen.unacknowledged -= bytes;
  }

  // Reads what the shim sends until the predicate holds.
  bool wait_until(const std::function<bool()>& holds, Nanos patience = kPatience) {
    const Nanos deadline = boottime_now() + patience;
    while (!holds()) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - boottime_now()).count();
      pollfd wait{socket_.get(), POLLIN, 0};
      if (left <= 0 || seen.has_ended || poll(&wait, 1, static_cast<int>(left)) <= 0) return false;
      receive();
    }
    return true;
  }
  bool wait_finished() {
    return wait_until([&] { return seen.finished.has_value(); });
  }

  bool reap_shim(Nanos patience) {
    const UniqueFd pidfd(sys::pidfd_open(shim_));
    pollfd wait{pidfd.get(), POLLIN, 0};
    const auto millis = std::chrono::ceil<milliseconds>(patience).count();
    if (poll(&wait, 1, static_cast<int>(millis)) <= 0) return false;
    int status = 0;
    EXPECT_EQ(waitpid(shim_, &status, 0), shim_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    shim_ = -1;
    return true;
  }

  // Whether this process is gone within the time. Not our child: its descriptor tells.
  static bool is_gone_within(pid_t pid, Nanos patience) {
    const UniqueFd pidfd(sys::pidfd_open(pid));
    if (!pidfd.is_valid()) return true;
    pollfd wait{pidfd.get(), POLLIN, 0};
    return poll(&wait, 1, static_cast<int>(std::chrono::ceil<milliseconds>(patience).count())) > 0;
  }

  fs::path root_;
  ShimConfig config_;
  ShimSpawn spawn_;
  Record seen;
  UniqueFd socket_;
  pid_t shim_ = -1;
  bool acknowledges_ = true;
  uid_t user_ = 0;  // whom the shim runs as; 0: as we do

 private:
  void receive() {
    std::vector<char> buffer(65536);
    const ssize_t n = read(socket_.get(), buffer.data(), buffer.size());
    seen.has_ended = n <= 0;
    if (n > 0) decoder_.append({buffer.data(), static_cast<std::size_t>(n)});
    while (const auto body = decoder_.next()) {
      FromShim message;
      ASSERT_TRUE(message.ParseFromArray(body->data(), static_cast<int>(body->size())));
      note(message);
    }
    if (acknowledges_ && seen.unacknowledged > 0) acknowledge(seen.unacknowledged);
  }

  void note(const FromShim& message) {
    EXPECT_FALSE(seen.finished.has_value()) << "Finished is the last message";
    if (message.has_ready()) {
      seen.pid = message.ready().pid();
      seen.containment = message.ready().containment();
    }
    if (message.has_started()) seen.started[message.started().rank()] = message.started().pid();
    if (message.has_exited()) {
      seen.exits[message.exited().rank()] = message.exited();
      ++seen.num_exit_reports;
    }
    if (message.has_pmi()) seen.pmi[message.pmi().rank()] += message.pmi().data();
    if (message.has_log()) note_log(message.log());
    if (message.has_notice()) seen.notices.push_back(message.notice().text());
    if (message.has_pong()) seen.pong = message.pong().id();
    if (message.has_signalled()) seen.signalled = message.signalled();
    if (message.has_input()) {
      seen.input_taken += message.input().taken();
      seen.is_input_closed = seen.is_input_closed || message.input().is_closed();
    }
    if (message.has_finished()) seen.finished = message.finished();
  }

  void note_log(const hvdrun::v1::LogChunk& chunk) {
    seen.unacknowledged += chunk.data().size();
    seen.num_ends[chunk.rank()] += chunk.eof() ? 1 : 0;
    if (chunk.stream() == hvdrun::v1::STREAM_STDOUT) seen.out[chunk.rank()] += chunk.data();
  }

  FrameDecoder decoder_;
  int fds_before_ = 0;
};

}  // namespace hvd
