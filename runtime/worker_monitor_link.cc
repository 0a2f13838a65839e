#include <grpcpp/grpcpp.h>
#include <sys/un.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "runtime/agent_channel_link.h"
#include "runtime/worker_monitor.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPeriod{2000};
constexpr milliseconds kShortestPeriod{10};
// An agent that does not take the end of the call is not waited for.
constexpr milliseconds kCloseLimit{500};

milliseconds period_of(const WorkerMonitor::Settings& settings) {
  if (settings.period.count() > 0) return settings.period;
  const char* text = std::getenv("HVDRUN_BEAT_MS");
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return value > 0 ? std::max(milliseconds(value), kShortestPeriod) : kPeriod;
}

v1::WorkerBeat beat_of(const WorkerMonitor::Settings& settings, Activity activity) {
  v1::WorkerBeat beat;
  beat.set_generation(settings.generation);
  beat.set_rank(static_cast<std::uint32_t>(settings.rank));
  beat.set_size(static_cast<std::uint32_t>(settings.size));
  beat.set_period_ms(settings.period.count());
  beat.set_phase(std::move(activity.phase));
  beat.set_step(activity.step);
  beat.set_scheduled(activity.scheduled);
  beat.set_completed(activity.completed);
  beat.set_waiting_for(std::move(activity.waiting_for));
  for (std::string& name : activity.missing) beat.add_missing(std::move(name));
  beat.set_num_missing(activity.num_missing);
  return beat;
}

}  // namespace

// The one Watch call. gRPC's reactions only note what happened and wake the monitor's thread, which
// starts every operation but the next read. Lives until OnDone, which the owner awaits.
class WorkerMonitor::Call final : public grpc::ClientBidiReactor<v1::WorkerBeat, v1::WorkerNotice> {
 public:
  explicit Call(const std::string& path) : stub_(v1::Rendezvous::NewStub(channel_to_agent(path))) {
    stub_->async()->Watch(&context_, this);
    AddHold();  // the monitor's thread writes outside reactions
    StartRead(&notice_);
    StartCall();
  }

  // False while the one before is on its way, or when there is no one to write to.
  bool write(v1::WorkerBeat beat) {
    const std::lock_guard lock(mutex_);
    if (is_writing_ || is_read_ended_ || is_closing_) return false;
    is_writing_ = true;
    beat_ = std::move(beat);
    StartWrite(&beat_);
    return true;
  }

  // Until a notice, the end or the deadline.
  void wait_until(SteadyTime deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline,
                        [this] { return !notices_.empty() || is_closing_ || has_news_; });
    has_news_ = false;
  }

  std::optional<v1::WorkerNotice> take_notice() {
    const std::lock_guard lock(mutex_);
    if (notices_.empty()) return std::nullopt;
    v1::WorkerNotice notice = std::move(notices_.front());
    notices_.pop_front();
    return notice;
  }

  [[nodiscard]] std::optional<grpc::Status> end() {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  [[nodiscard]] bool is_closing() {
    const std::lock_guard lock(mutex_);
    return is_closing_;
  }

  // From the owner's thread: the monitor's is to leave.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
  }

  // After the monitor's thread has left. Says goodbye, and returns when gRPC has let go.
  void finish() {
    std::unique_lock lock(mutex_);
    if (!is_writing_ && !is_read_ended_) StartWritesDone();
    release(lock);
    const auto is_done = [this] { return status_.has_value(); };
    if (changed_.wait_for(lock, kCloseLimit, is_done)) return;
    context_.TryCancel();
    changed_.wait(lock, is_done);
  }

 private:
  void OnReadDone(bool ok) override {
    std::unique_lock lock(mutex_);
    if (ok) {
      notices_.push_back(std::move(notice_));
      notice_.Clear();
      changed_.notify_all();
      return StartRead(&notice_);
    }
    is_read_ended_ = true;
    release(lock);
  }
  void OnWriteDone(bool) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
    has_news_ = true;
    changed_.notify_all();
  }

  // Nothing will be written any more.
  void release(const std::unique_lock<std::mutex>&) {
    if (!std::exchange(is_released_, true)) RemoveHold();
  }

  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  v1::WorkerNotice notice_;  // being read
  v1::WorkerBeat beat_;      // being written
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::WorkerNotice> notices_;
  std::optional<grpc::Status> status_;
  bool has_news_ = false;
  bool is_writing_ = false;
  bool is_read_ended_ = false;
  bool is_closing_ = false;
  bool is_released_ = false;
};

struct WorkerMonitor::Impl {
  Impl(Settings the_settings, const ActivityBoard& the_board, OnNotice abort, OnNotice dump)
      : settings(std::move(the_settings)),
        board(the_board),
        on_abort(std::move(abort)),
        on_dump(std::move(dump)),
        call(settings.socket_path) {}

  void run();
  void send_beat();
  void take_notices();
  void take_end(const grpc::Status& status);
  void abort(const std::string& reason) {
    if (!std::exchange(is_aborted, true)) on_abort(reason);
  }

  const Settings settings;
  const ActivityBoard& board;
  const OnNotice on_abort;
  const OnNotice on_dump;
  Call call;
  bool is_aborted = false;
  std::thread thread;  // last: it uses all the others
};

void WorkerMonitor::Impl::run() {
  SteadyTime next = steady_clock::now();
  while (!call.is_closing()) {
    take_notices();
    if (const auto status = call.end()) return take_end(*status);
    if (steady_clock::now() >= next) {
      call.write(beat_of(settings, board.read()));
      next = steady_clock::now() + settings.period;
    }
    call.wait_until(next);
  }
}

void WorkerMonitor::Impl::take_notices() {
  while (const auto notice = call.take_notice()) {
    const bool is_old = notice->generation() != 0 && notice->generation() < settings.generation;
    if (is_old) continue;
    if (notice->kind() == v1::WorkerNotice::KIND_ABORT) abort(notice->reason());
    if (notice->kind() == v1::WorkerNotice::KIND_DUMP) on_dump(notice->reason());
  }
}

// Whoever ended the agent mostly ends this process next; only a worker that is left alone has to
// leave by itself.
void WorkerMonitor::Impl::take_end(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) return;
  const SteadyTime deadline = steady_clock::now() + settings.lost_grace;
  while (!call.is_closing() && steady_clock::now() < deadline) call.wait_until(deadline);
  if (call.is_closing()) return;
  abort(fmt::format("the agent of this node has gone{}{}",
                    status.error_message().empty() ? "" : ": ", status.error_message()));
}

WorkerMonitor::WorkerMonitor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Result<std::unique_ptr<WorkerMonitor>> WorkerMonitor::start(Settings settings,
                                                            const ActivityBoard& board,
                                                            OnNotice on_abort, OnNotice on_dump) {
  if (settings.socket_path.empty() ||
      settings.socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return make_error("'{}' is no path of an agent's socket", settings.socket_path);
  }
  settings.period = period_of(settings);
  auto impl =
      std::make_unique<Impl>(std::move(settings), board, std::move(on_abort), std::move(on_dump));
  return std::unique_ptr<WorkerMonitor>(new WorkerMonitor(std::move(impl)));
}

WorkerMonitor::~WorkerMonitor() {
  impl_->call.close();
  impl_->thread.join();
  impl_->call.finish();
}

}  // namespace hvd
