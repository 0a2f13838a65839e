// What the launcher and the shim send, turned into events of the job or passed on to the other
// side.
#include <cerrno>
#include <utility>

#include "agent/fabric_probe.h"
#include "agent/job.h"
#include "agent/port_holder.h"
#include "agent/process_limit.h"
#include "base/read_file.h"

namespace hvd {

namespace v1 = hvdrun::v1;

void Job::take_control(v1::ControlRequest&& request) {
  request_ = std::move(request);
  const auto kind = request_.message_case();
  if (state_ == JobState::kNew && kind != v1::ControlRequest::kHello) {
    return refuse("the first request must be the hello");
  }
  if (holds(kind)) return held_.push_back(std::move(request_));
  v1::ToShim to_shim;
  v1::ControlReply reply;
  switch (kind) {
    case v1::ControlRequest::kHello:
      return handle(JobEvent::kHello);
    case v1::ControlRequest::kFabricListen:
      *reply.mutable_fabric_listen() = master_port_.open(request_.fabric_listen(), hello_.job_id());
      return service_.send(std::move(reply));
    case v1::ControlRequest::kFabricProbe:
      return probe(request_.fabric_probe());
    case v1::ControlRequest::kSpawn:
      return handle(JobEvent::kSpawn);
    case v1::ControlRequest::kStop:
      return take_stop(request_.stop());
    case v1::ControlRequest::kWorkerNotice:
      return rendezvous_.notify(request_.worker_notice(), [] {});
    case v1::ControlRequest::kSignal:
      to_shim.mutable_signal()->set_signal(request_.signal().signal());
      to_shim.mutable_signal()->set_id(request_.signal().id());
      shim_.send(to_shim);
      return;
    case v1::ControlRequest::kHeartbeat:
      return take_heartbeat(request_.heartbeat());
    case v1::ControlRequest::kStoreReply:
      return store_.take_reply(request_.store_reply());
    case v1::ControlRequest::kFetchFiles:
      return take_fetch();
    case v1::ControlRequest::kCollectEvidence:
      return take_collect(request_.collect_evidence());
    case v1::ControlRequest::kBye:
      has_launcher_said_bye_ = true;
      return handle(JobEvent::kBye);
    case v1::ControlRequest::MESSAGE_NOT_SET:
      // Of a newer launcher: what this agent does not know it need not do.
      return take_log(LogLevel::kWarning,
                      "the launcher sent a request that this agent does not know");
  }
}

void Job::take_heartbeat(const v1::Heartbeat& heartbeat) {
  last_heartbeat_ = boottime_now();
  v1::ToShim renew;
  renew.mutable_renew();
  shim_.send(renew);
  v1::ControlReply reply;
  *reply.mutable_heartbeat() = heartbeat;
  reply.mutable_heartbeat()->set_agent_boottime_ns(last_heartbeat_.count());
  add_vitals(reply.mutable_heartbeat());
  service_.send(std::move(reply));
  send_kernel_facts();
}

void Job::probe(const v1::FabricProbe& request) {
  boost::asio::co_spawn(loop_, probe_fabric(request, hello_.job_id()),
                        [this, alive = std::weak_ptr(alive_)](const std::exception_ptr&,
                                                              v1::FabricProbeReply result) {
                          if (alive.expired()) return;
                          v1::ControlReply reply;
                          *reply.mutable_fabric_probe() = std::move(result);
                          service_.send(std::move(reply));
                        });
}

void Job::take_output_request(const v1::OutputRequest& request) {
  if (!output_) {
    early_credit_ += request.credit();
    return;
  }
  output_->add_credit(request.credit());
  pass_input(request);
  send_output();
}

void Job::take_shim_message(v1::FromShim&& message) {
  v1::ControlReply reply;
  switch (message.message_case()) {
    case v1::FromShim::kReady:
      return take_ready(message.ready());
    case v1::FromShim::kStarted:
      running_[message.started().rank()] = message.started().pid();
      note_started(message.started().rank(), message.started().pid());
      *reply.mutable_started() = message.started();
      reply.mutable_started()->set_binding(bindings_[message.started().rank()]);
      return service_.send(std::move(reply));
    case v1::FromShim::kExited:
      running_.erase(message.exited().rank());
      note_ended(message.exited().rank());
      if (pmi_) pmi_->note_end(*message.mutable_exited());
      *reply.mutable_exited() = std::move(*message.mutable_exited());
      add_port_holder(reply.mutable_exited());
      add_process_limit(reply.mutable_exited());
      service_.send(std::move(reply));
      return send_kernel_facts();
    case v1::FromShim::kLog:
      return take_log_chunk(std::move(*message.mutable_log()));
    case v1::FromShim::kFinished:
      return take_finished(std::move(*message.mutable_finished()));
    case v1::FromShim::kSignalled:
      *reply.mutable_signalled() = message.signalled();
      return service_.send(std::move(reply));
    case v1::FromShim::kInput:
      *reply.mutable_input() = message.input();
      return service_.send(std::move(reply));
    case v1::FromShim::kPmi:
      return pmi_ ? pmi_->take(message.pmi()) : void();
    case v1::FromShim::kNotice:
      return take_log(LogLevel::kWarning, message.notice().text());
    case v1::FromShim::kPong:
    case v1::FromShim::MESSAGE_NOT_SET:
      return;
  }
}

// The reservation keeps ordinary programs away from MASTER_PORT, not one with SO_REUSEADDR.
void Job::add_port_holder(v1::ExitReport* report) const {
  const auto port = static_cast<std::uint16_t>(hello_reply_.fabric_listen().port());
  const bool has_failed = report->what_case() == v1::ExitReport::kExited && report->exited() != 0;
  if (report->rank() != 0 || port == 0 || !has_failed || report->stopped()) return;
  report->set_port_holder(find_port_holder(port, hello_.job_id(), hello_.node()));
}

void Job::take_ready(const v1::ShimReady& ready) {
  hello_reply_.set_shim_pid(ready.pid());
  hello_reply_.set_containment(ready.containment());
  // The clocks are compared with the moment of the answer, not of the look-ups before it.
  hello_reply_.set_boottime_ns(boottime_now().count());
  hello_reply_.set_realtime_ns(realtime_now().count());
  v1::ControlReply reply;
  *reply.mutable_hello() = hello_reply_;
  service_.send(std::move(reply));
  is_hello_answered_ = true;
  // Behind the answer, so that the launcher goes on meanwhile, and before anything is started.
  look_at_earlier_jobs();
}

void Job::add_process_limit(v1::ExitReport* report) {
  const bool is_refused = report->what_case() == v1::ExitReport::kFailedToStart &&
                          report->failed_to_start().errno_value() == EAGAIN;
  if (!is_refused) return;
  report->mutable_failed_to_start()->set_detail(
      full_pids_cgroup(read_small_file("/proc/self/cgroup")));
}

// The launcher sends no more than its window, so nothing is held here.
void Job::pass_input(const v1::OutputRequest& request) {
  if (request.input().empty() && !request.input_end()) return;
  v1::ToShim message;
  message.mutable_stdin()->set_data(request.input());
  message.mutable_stdin()->set_eof(request.input_end());
  shim_.send(message);
}

void Job::send_kernel_facts() {
  if (!kernel_log_) return;
  v1::ControlReply reply;
  *reply.mutable_kernel_facts() = kernel_log_->read_new();
  if (reply.kernel_facts().facts_size() > 0) service_.send(std::move(reply));
}

// What the GPUs hold can be seen only now; the launcher hears of both together.
void Job::take_finished(v1::Finished&& finished) {
  is_finished_seen_ = true;
  send_kernel_facts();  // the last ones may be the reason of what happened
  // What a hook has said that went with the last rank is heard before the node's end.
  if (evidence_) evidence_->end("was ended because no rank runs any more");
  if (config_.on_survivor) {
    for (const v1::Survivor& survivor : finished.survivors()) config_.on_survivor(survivor);
  }
  v1::ControlReply reply;
  *reply.mutable_finished() = std::move(finished);
  reply.mutable_finished()->set_stopped_by(stopped_by_);
  if (gpu_memory_.can_compare()) {
    gpu_memory_.look_after([this, reply](const std::vector<std::string>& sentences) mutable {
      for (const std::string& sentence : sentences) reply.mutable_finished()->add_remains(sentence);
      if (state_ != JobState::kClosing) service_.send(std::move(reply));
    });
  } else {
    service_.send(std::move(reply));
  }
  handle(JobEvent::kFinished);
}

// Taken over at once, whatever the launcher does: a slow terminal never blocks a worker.
void Job::take_log_chunk(v1::LogChunk&& chunk) {
  unacknowledged_ += chunk.data().size();
  if (vitals_ && !chunk.data().empty()) vitals_->hear(chunk.rank(), monotonic_now());
  if (output_) output_->push(std::move(chunk));
}

void Job::end_shim_batch() {
  if (unacknowledged_ > 0) {
    v1::ToShim message;
    message.mutable_log_ack()->set_bytes(std::exchange(unacknowledged_, 0));
    shim_.send(message);
  }
  send_output();
}

void Job::send_output() {
  if (!output_ || !service_.is_output_idle()) return;
  v1::OutputReply batch = output_->next_batch();
  if (batch.chunks_size() > 0) return service_.send_output(std::move(batch));
  send_files();
}

}  // namespace hvd
