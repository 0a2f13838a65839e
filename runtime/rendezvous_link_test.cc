#include "runtime/rendezvous_link.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "hvdrun/v1/rendezvous.grpc.pb.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// An agent as a worker sees it: the service on a unix socket.
class FakeAgent final : public v1::Rendezvous::Service {
 public:
  explicit FakeAgent(const std::string& path) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeAgent() override {
    {
      const std::lock_guard lock(mutex_);
      is_going_ = true;
    }
    wake_.notify_all();
    server_->Shutdown();
  }

  grpc::Status Put(grpc::ServerContext*, const v1::PutRequest* request, v1::PutReply*) override {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] =
        values_.emplace(std::pair(request->key(), request->generation()), request->value());
    if (is_new || found->second == request->value()) return grpc::Status::OK;
    return {grpc::StatusCode::ALREADY_EXISTS, "key 'k' has another value already"};
  }

  grpc::Status Get(grpc::ServerContext*, const v1::GetRequest* request,
                   v1::GetReply* reply) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find({request->key(), request->generation()});
    if (found == values_.end()) {
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "key 'k' was not put in time"};
    }
    reply->set_value(found->second);
    return grpc::Status::OK;
  }

  // A barrier that never fills: silent until the agent goes.
  grpc::Status Barrier(grpc::ServerContext*, const v1::BarrierRequest* request,
                       v1::BarrierReply*) override {
    std::unique_lock lock(mutex_);
    if (request->size() > 1) wake_.wait(lock, [this] { return is_going_; });
    return grpc::Status::OK;
  }

  // Rank 0 fits, rank 1 does not, rank 2 waits for others.
  grpc::Status Register(grpc::ServerContext*, const v1::Registration* request,
                        v1::RegisterReply* reply) override {
    reply->add_warnings("torch differs");
    if (request->rank() == 0) return grpc::Status::OK;
    if (request->rank() == 2) return {grpc::StatusCode::DEADLINE_EXCEEDED, "missing: rank 3 (b)"};
    return {grpc::StatusCode::FAILED_PRECONDITION, "NCCL version differs"};
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_going_ = false;
  std::map<std::pair<std::string, std::uint32_t>, std::string> values_;
  std::unique_ptr<grpc::Server> server_;
};

class RendezvousLinkTest : public testing::Test {
 protected:
  RendezvousLinkTest() {
    char name[] = "/tmp/rendezvous link.XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/socket";
  }
  ~RendezvousLinkTest() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  RendezvousLink link() { return std::move(*RendezvousLink::open(path_)); }

  std::string folder_;
  std::string path_;
};

TEST_F(RendezvousLinkTest, CarriesAnyBytesByKeyAndGeneration) {
  const FakeAgent agent(path_);
  RendezvousLink link = this->link();
  std::string value(128, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 37);
  ASSERT_TRUE(link.put("k", value, 0, seconds(20)));
  ASSERT_TRUE(link.put("k", "other generation", 1, seconds(20)));
  EXPECT_EQ(link.get("k", 0, seconds(20)).value(), value);
  EXPECT_EQ(link.get("k", 1, seconds(20)).value(), "other generation");
  EXPECT_TRUE(link.barrier("start", 0, 0, 1, seconds(20)));
}

TEST_F(RendezvousLinkTest, TheStoresReasonIsInTheErrorAndNoValueIs) {
  const FakeAgent agent(path_);
  RendezvousLink link = this->link();
  ASSERT_TRUE(link.put("k", "secret1", 0, seconds(20)));
  const auto conflict = link.put("k", "secret2", 0, seconds(20));
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().message, "rendezvous: put of 'k': key 'k' has another value already");
  EXPECT_THAT(conflict.error().message, Not(HasSubstr("secret")));
  const auto missing = link.get("other", 0, seconds(20));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ExitCode::kTimeout);
  EXPECT_THAT(missing.error().message, HasSubstr("(key 'k' was not put in time)"));
}

TEST_F(RendezvousLinkTest, ASilentAgentEndsAtTheCallsOwnDeadline) {
  const FakeAgent agent(path_);
  RendezvousLink link = this->link();
  const auto late = link.barrier("start", 0, 3, 4, milliseconds(80));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ExitCode::kTimeout);
  EXPECT_EQ(late.error().message, "rendezvous: barrier 'start' of rank 3: no answer within 80 ms");
}

TEST_F(RendezvousLinkTest, ARegistrationComesBackWithWarningsOrTheReasonAgainstIt) {
  const FakeAgent agent(path_);
  RendezvousLink link = this->link();
  v1::Registration registration;
  const auto warnings = link.register_worker(registration, seconds(20));
  ASSERT_TRUE(warnings);
  EXPECT_THAT(*warnings, testing::ElementsAre("torch differs"));
  registration.set_rank(1);
  const auto refused = link.register_worker(registration, seconds(20));
  ASSERT_FALSE(refused);
  EXPECT_EQ(static_cast<int>(refused.error().code), 73);
  EXPECT_EQ(refused.error().message, "registration of rank 1: NCCL version differs");
  registration.set_rank(2);
  const auto late = link.register_worker(registration, seconds(20));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ExitCode::kTimeout);
  EXPECT_THAT(late.error().message, HasSubstr("(missing: rank 3 (b))"));
}

TEST_F(RendezvousLinkTest, NobodyOnTheSocketIsAnErrorThatNamesIt) {
  RendezvousLink link = this->link();
  const auto refused = link.get("k", 0, seconds(20));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().may_retry);
  EXPECT_THAT(refused.error().message, HasSubstr(path_));
}

TEST(RendezvousLinkOpen, NeedsAPathThatASocketCanHave) {
  EXPECT_FALSE(RendezvousLink::open(""));
  EXPECT_FALSE(RendezvousLink::open(std::string(108, 'x')));
  ::unsetenv("HVDRUN_RENDEZVOUS");
  const auto unset = RendezvousLink::open_from_environment();
  ASSERT_FALSE(unset);
  EXPECT_THAT(unset.error().message, HasSubstr("HVDRUN_RENDEZVOUS is not set"));
}

}  // namespace
}  // namespace hvd
