#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "runtime/worker_monitor.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kLimit = 20s;

// An agent as a monitor sees it: one Watch call that notes the beats and sends what it is given.
class WatchingAgent final : public v1::Rendezvous::Service {
 public:
  explicit WatchingAgent(const std::string& path) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~WatchingAgent() override { leave(); }
  void leave() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  grpc::Status Watch(grpc::ServerContext*,
                     grpc::ServerReaderWriter<v1::WorkerNotice, v1::WorkerBeat>* stream) override {
    v1::WorkerBeat beat;
    while (stream->Read(&beat)) {
      const std::lock_guard lock(mutex_);
      beats_.push_back(beat);
      for (const auto& notice : notices_) stream->Write(notice);
      notices_.clear();
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
    return grpc::Status::OK;
  }

  // With the next beat.
  void send(v1::WorkerNotice::Kind kind, const std::string& reason) {
    v1::WorkerNotice notice;
    notice.set_kind(kind);
    notice.set_reason(reason);
    const std::lock_guard lock(mutex_);
    notices_.push_back(notice);
  }
  bool wait(const std::function<bool(const std::vector<v1::WorkerBeat>&)>& is_enough) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [&] { return is_enough(beats_); });
  }
  bool wait_closed() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [this] { return is_closed_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::WorkerBeat> beats_;
  std::vector<v1::WorkerNotice> notices_;
  bool is_closed_ = false;
  std::unique_ptr<grpc::Server> server_;
};

// An agent from before there were heartbeats.
class OldAgent final : public v1::Rendezvous::Service {};

// What the monitor called back with.
class Calls {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(text);
    changed_.notify_all();
  }
  std::vector<std::string> wait(std::size_t count, std::chrono::milliseconds limit = kLimit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return calls_.size() >= count; });
    return calls_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
};

class WorkerMonitorTest : public testing::Test {
 protected:
  WorkerMonitorTest() {
    char name[] = "/tmp/worker_monitor.XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/socket";
  }
  ~WorkerMonitorTest() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  std::unique_ptr<WorkerMonitor> start() {
    WorkerMonitor::Settings settings;
    settings.socket_path = path_;
    settings.rank = 3;
    settings.size = 4;
    settings.generation = 2;
    settings.period = 20ms;
    settings.lost_grace = 100ms;
    auto monitor = WorkerMonitor::start(
        settings, board_, [this](const std::string& reason) { calls_.add("abort: " + reason); },
        [this](const std::string& reason) { calls_.add("dump: " + reason); });
    EXPECT_TRUE(monitor);
    return std::move(*monitor);
  }

  std::string folder_;
  std::string path_;
  ActivityBoard board_;
  Calls calls_;
};

TEST_F(WorkerMonitorTest, TellsWhatTheBoardSaysAndGoesOn) {
  WatchingAgent agent(path_);
  board_.update([](Activity& activity) {
    activity.phase = "running";
    activity.step = 7;
    activity.scheduled = 12;
    activity.completed = 11;
    activity.waiting_for = "all_reduce of bucket 3";
    activity.missing = {"a", "b"};
    activity.num_missing = 5;
  });
  const auto monitor = start();
  ASSERT_TRUE(agent.wait([](const auto& beats) { return beats.size() >= 3; }));
  board_.update([](Activity& activity) { activity.step = 8; });
  EXPECT_TRUE(agent.wait([](const auto& beats) {
    const v1::WorkerBeat& first = beats.front();
    return beats.back().step() == 8 && first.rank() == 3 && first.size() == 4 &&
           first.generation() == 2 && first.period_ms() == 20 && first.phase() == "running" &&
           first.step() == 7 && first.scheduled() == 12 && first.completed() == 11 &&
           first.waiting_for() == "all_reduce of bucket 3" && first.missing_size() == 2 &&
           first.num_missing() == 5;
  }));
}

TEST_F(WorkerMonitorTest, HandsNoticesOverAndAnAbortOnce) {
  WatchingAgent agent(path_);
  agent.send(v1::WorkerNotice::KIND_DUMP, "it stalls");
  agent.send(v1::WorkerNotice::KIND_ABORT, "rank 2 was killed");
  agent.send(v1::WorkerNotice::KIND_ABORT, "again");
  agent.send(v1::WorkerNotice::KIND_DUMP, "still");
  const auto monitor = start();
  EXPECT_THAT(calls_.wait(3),
              testing::ElementsAre("dump: it stalls", "abort: rank 2 was killed", "dump: still"));
}

TEST_F(WorkerMonitorTest, ItsEndIsAGoodbyeAndNoAbort) {
  WatchingAgent agent(path_);
  auto monitor = start();
  ASSERT_TRUE(agent.wait([](const auto& beats) { return !beats.empty(); }));
  const SteadyTime begin = std::chrono::steady_clock::now();
  monitor.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_TRUE(agent.wait_closed());
  EXPECT_TRUE(calls_.wait(1, 150ms).empty());
}

TEST_F(WorkerMonitorTest, AnAgentThatGoesIsAnAbortAfterTheGrace) {
  auto agent = std::make_unique<WatchingAgent>(path_);
  const auto monitor = start();
  ASSERT_TRUE(agent->wait([](const auto& beats) { return !beats.empty(); }));
  const SteadyTime begin = std::chrono::steady_clock::now();
  agent->leave();
  const auto calls = calls_.wait(1);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_THAT(calls[0], HasSubstr("abort: the agent of this node has gone"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
}

TEST_F(WorkerMonitorTest, NobodyOnTheSocketIsAnAbortToo) {
  const auto monitor = start();
  EXPECT_THAT(calls_.wait(1), testing::ElementsAre(HasSubstr("has gone")));
}

TEST_F(WorkerMonitorTest, AnAgentWithoutHeartbeatsIsNoError) {
  OldAgent agent;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials());
  builder.RegisterService(&agent);
  const auto server = builder.BuildAndStart();
  {
    const auto monitor = start();
    EXPECT_TRUE(calls_.wait(1, 400ms).empty());  // longer than the grace
  }
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(WorkerMonitorTest, ManyStartsAndEndsLeaveNothingBehind) {
  WatchingAgent agent(path_);
  for (int i = 0; i < 30; ++i) start().reset();
  EXPECT_TRUE(calls_.wait(1, 50ms).empty());
}

TEST(WorkerMonitorStart, NeedsAPathThatASocketCanHave) {
  const ActivityBoard board;
  WorkerMonitor::Settings settings;
  const auto nothing = [](const std::string&) {};
  EXPECT_FALSE(WorkerMonitor::start(settings, board, nothing, nothing));
  settings.socket_path = std::string(108, 'x');
  EXPECT_FALSE(WorkerMonitor::start(settings, board, nothing, nothing));
}

}  // namespace
}  // namespace hvd
