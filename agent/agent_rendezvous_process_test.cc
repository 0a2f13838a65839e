// The rendezvous socket of the built hvd-agent, as a worker and as the launcher meet it.
#include <gmock/gmock.h>

#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "tests/support/agent_process.h"

namespace hvd {
namespace {

using namespace std::chrono_literals;
using test::AgentProcessTest;
using ::testing::HasSubstr;

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
  using Watch = std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerBeat, v1::WorkerNotice>>;
  // It has sent the beat.
  Watch open_watch(grpc::ClientContext* context, const v1::WorkerBeat& beat) {
    limit(context, 10s);
    Watch watch = worker_->Watch(context);
    EXPECT_TRUE(watch->Write(beat));
    return watch;
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
  v1::WorkerBeat beat;
  beat.set_rank(0);
  beat.set_size(1);
  beat.set_period_ms(100);
  beat.set_step(7);
  const auto watch = open_watch(&context, beat);
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
  v1::WorkerBeat beat;
  beat.set_size(1);
  const auto watch = open_watch(&context, beat);
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
  v1::WorkerBeat beat;
  beat.set_size(1);
  const auto watch = open_watch(&context, beat);
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
