// What concerns the workers of the runtime: their heartbeats to the launcher, its notices to them.
#include <utility>

#include "agent/job.h"
#include "agent/shim/proc.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// Beats wait this long for others to travel with; also how often late workers are looked for.
constexpr auto kCollect = std::chrono::milliseconds(250);

char state_of_process(pid_t pid) {
  const auto stat = read_stat(pid);
  return stat ? stat->state : '\0';
}

}  // namespace

// The reason goes out before the first signal: a worker that aborts by itself names it.
void Job::take_stop(const v1::Stop& stop) {
  if (evidence_) evidence_->end("was ended because the job is stopped");
  v1::ToShim message;
  message.mutable_stop()->set_grace_ms(stop.grace_ms());
  message.mutable_stop()->set_signal(stop.signal());
  message.mutable_stop()->set_reason(stop.reason());
  const auto climb = [this, message] { shim_.send(message); };
  if (!stop.abort()) return climb();
  v1::WorkerNotice notice;
  notice.set_kind(v1::WorkerNotice::KIND_ABORT);
  notice.set_reason(stop.reason());
  rendezvous_.notify(notice, climb);
}

void Job::take_beat(const v1::WorkerBeat& beat, pid_t pid) {
  const auto started = running_.find(beat.rank());
  const pid_t leader = started == running_.end() ? 0 : started->second;
  beats_.take(beat, pid > 0 ? pid : leader, boottime_now());
  arm_beats();
}

void Job::arm_beats() {
  if (is_beat_timer_set_ || beats_.is_empty()) return;
  is_beat_timer_set_ = true;
  const auto heartbeat = std::chrono::milliseconds(hello_.heartbeat_ms());
  beat_timer_.start(heartbeat.count() > 0 ? std::min(heartbeat, kCollect) : kCollect, [this] {
    is_beat_timer_set_ = false;
    send_beats();
  });
}

void Job::send_beats() {
  v1::ControlReply reply;
  *reply.mutable_worker_beats() = beats_.collect(boottime_now(), state_of_process);
  if (reply.worker_beats().beats_size() > 0) service_.send(std::move(reply));
  arm_beats();
}

}  // namespace hvd
