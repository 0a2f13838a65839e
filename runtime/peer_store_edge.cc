#include "runtime/peer_store_edge.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "hvdrun/v1/rendezvous.grpc.pb.h"
#include "proto/registration_desk.h"
#include "proto/rendezvous_store.h"
#include "proto/store_call_edge.h"
#include "runtime/agent_channel_link.h"
#include "runtime/tcp_place.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::steady_clock;

constexpr std::uint32_t kNode = 0;  // all callers are one node's to the store
constexpr int kMaxWarnings = 8;     // of ranks of other jobs
constexpr std::size_t kMaxShown = 200;
constexpr std::chrono::seconds kLastAnswers{2};

class PeerCall;

// The store, its open calls and its clock.
class PeerStore {
 public:
  PeerStore() : clock_([this] { watch_deadlines(); }) {}
  ~PeerStore() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    clock_.join();
  }
  PeerStore(const PeerStore&) = delete;
  PeerStore& operator=(const PeerStore&) = delete;

  // The id to cancel it by.
  std::uint64_t start(v1::StoreRequest request, PeerCall* call);
  void cancel(std::uint64_t id);
  void cancel_all(const std::string& reason);

 private:
  using Due = std::vector<std::pair<PeerCall*, v1::StoreReply>>;

  // Under the lock.
  [[nodiscard]] StoreAnswers handle(const v1::StoreRequest& request);
  [[nodiscard]] StoreAnswers expire();
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  // Under the lock; each call is taken out once, and whoever took it answers it.
  [[nodiscard]] Due take(const StoreAnswers& answers);
  static void answer(const Due& due);
  void watch_deadlines();
  void print_outcome();

  std::mutex mutex_;
  std::condition_variable changed_;
  RendezvousStore store_;  // guarded by mutex_, as all below
  RegistrationDesk desk_;
  std::map<std::uint64_t, PeerCall*> open_;
  std::uint64_t last_id_ = 0;
  bool is_ending_ = false;
  std::thread clock_;
};

// gRPC owns it until OnDone; the store's map names it until it is answered, which comes before.
class PeerCall final : public grpc::ServerUnaryReactor {
 public:
  // take: puts the answer's values into gRPC's reply.
  PeerCall(PeerStore& store, v1::StoreRequest request,
           std::function<void(const v1::StoreReply&)> take)
      : store_(store), take_(std::move(take)), id_(store.start(std::move(request), this)) {}

  void answer(const v1::StoreReply& reply) {
    take_(reply);
    Finish(store_status(reply));
  }

 private:
  void OnCancel() override { store_.cancel(id_); }
  void OnDone() override { delete this; }

  PeerStore& store_;
  const std::function<void(const v1::StoreReply&)> take_;
  const std::uint64_t id_;
};

std::uint64_t PeerStore::start(v1::StoreRequest request, PeerCall* call) {
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_id_;
  request.set_id(id);
  open_.emplace(id, call);
  const Due due = take(handle(request));
  print_outcome();
  lock.unlock();
  changed_.notify_all();
  answer(due);
  return id;
}

StoreAnswers PeerStore::handle(const v1::StoreRequest& request) {
  const SteadyTime now = steady_clock::now();
  if (request.has_registration()) {
    return desk_.take(kNode, request.id(), request.registration(), now);
  }
  return store_.handle(kNode, request, now);
}

StoreAnswers PeerStore::expire() {
  const SteadyTime now = steady_clock::now();
  StoreAnswers answers = store_.expire(now);
  const StoreAnswers of_desk = desk_.expire(now);
  answers.insert(answers.end(), of_desk.begin(), of_desk.end());
  return answers;
}

std::optional<SteadyTime> PeerStore::next_deadline() const {
  const auto of_store = store_.next_deadline();
  const auto of_desk = desk_.next_deadline();
  if (!of_store || !of_desk) return of_store ? of_store : of_desk;
  return std::min(*of_store, *of_desk);
}

// Once for the job, by rank 0's process; each rank's own reply is one line.
void PeerStore::print_outcome() {
  const auto outcome = desk_.take_outcome();
  if (!outcome) return;
  for (const std::string& warning : outcome->warnings) log(LogLevel::kWarning, "{}", warning);
  if (!outcome->refusal || outcome->refusal->table.empty()) return;
  log(LogLevel::kError, "{}\n{}", outcome->refusal->headline,
      fmt::join(outcome->refusal->table, "\n"));
}

void PeerStore::cancel(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return;  // answered
  PeerCall* const call = found->second;
  open_.erase(found);
  v1::StoreRequest request;
  request.set_id(++last_id_);
  request.set_cancel(id);
  const Due due = take(store_.handle(kNode, request, steady_clock::now()));
  desk_.cancel(kNode, id);
  lock.unlock();
  v1::StoreReply reply;
  reply.set_status(v1::STORE_STATUS_CANCELLED);
  call->answer(reply);
  answer(due);
}

void PeerStore::cancel_all(const std::string& reason) {
  std::unique_lock lock(mutex_);
  StoreAnswers answers = store_.cancel_all(reason);
  const StoreAnswers of_desk = desk_.cancel_all(reason);
  answers.insert(answers.end(), of_desk.begin(), of_desk.end());
  const Due due = take(answers);
  lock.unlock();
  answer(due);
}

PeerStore::Due PeerStore::take(const StoreAnswers& answers) {
  Due due;
  for (const StoreAnswer& each : answers) {
    const auto found = open_.find(each.reply.id());
    if (found == open_.end()) continue;
    due.emplace_back(found->second, each.reply);
    open_.erase(found);
  }
  return due;
}

void PeerStore::answer(const Due& due) {
  for (const auto& [call, reply] : due) call->answer(reply);
}

void PeerStore::watch_deadlines() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const Due due = take(expire());
    print_outcome();
    if (!due.empty()) {
      lock.unlock();
      answer(due);
      lock.lock();
      continue;
    }
    if (const auto next = next_deadline()) {
      changed_.wait_until(lock, *next);
    } else {
      changed_.wait(lock);
    }
  }
}

// The answer to a rank of another job.
class RefusedCall final : public grpc::ServerUnaryReactor {
 public:
  explicit RefusedCall(std::string why) {
    Finish({grpc::StatusCode::FAILED_PRECONDITION, std::move(why)});
  }

 private:
  void OnDone() override { delete this; }
};

// What a stranger says goes into sentences.
std::string printable(std::string text) {
  text.resize(std::min(text.size(), kMaxShown));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.empty() ? "unnamed" : text;
}

std::string job_of(const grpc::CallbackServerContext& context) {
  const auto& said = context.client_metadata();
  const auto found = said.find(kJobMetadata);
  return found == said.end() ? "" : std::string(found->second.data(), found->second.size());
}

std::string listen_target(const std::string& host, int port) {
  if (!is_loopback_host(host)) return fmt::format("[::]:{}", port);
  return host == "::1" ? fmt::format("[::1]:{}", port) : fmt::format("{}:{}", host, port);
}

}  // namespace

struct PeerStoreEdge::Service final : v1::Rendezvous::CallbackService {
  explicit Service(std::string served) : job(std::move(served)) {}
  ~Service() override {
    store.cancel_all("rank 0, which serves the rendezvous, has ended");
    // Answers are on their way: rank 0 may get its own first and be who ends.
    if (server) server->Shutdown(std::chrono::system_clock::now() + kLastAnswers);
  }

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context, const v1::PutRequest* asked,
                                v1::PutReply*) override {
    if (auto* const refused = refuse_stranger(*context)) return refused;
    return new PeerCall(store, store_request(*asked), [](const v1::StoreReply&) {});
  }
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetRequest* asked,
                                v1::GetReply* reply) override {
    if (auto* const refused = refuse_stranger(*context)) return refused;
    return new PeerCall(store, store_request(*asked, store_timeout_ms(*context)),
                        [reply](const v1::StoreReply& found) { reply->set_value(found.value()); });
  }
  grpc::ServerUnaryReactor* Barrier(grpc::CallbackServerContext* context,
                                    const v1::BarrierRequest* asked, v1::BarrierReply*) override {
    if (auto* const refused = refuse_stranger(*context)) return refused;
    return new PeerCall(store, store_request(*asked, store_timeout_ms(*context)),
                        [](const v1::StoreReply&) {});
  }
  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::Registration* asked,
                                     v1::RegisterReply* reply) override {
    if (auto* const refused = refuse_stranger(*context, asked)) return refused;
    return new PeerCall(
        store, store_request(*asked, store_timeout_ms(*context)),
        [reply](const v1::StoreReply& found) { *reply->mutable_warnings() = found.warnings(); });
  }

  // Null: the caller is a rank of this job. asked: what it said of itself, if that.
  grpc::ServerUnaryReactor* refuse_stranger(const grpc::CallbackServerContext& context,
                                            const v1::Registration* asked = nullptr) {
    const std::string other = job_of(context);
    if (other == job) return nullptr;
    if (asked != nullptr) warn_of_stranger(*asked, other);
    return new RefusedCall(
        fmt::format("another job ({}) meets there than this rank's ({}): give each job a place of "
                    "its own to meet (HVDRUN_INIT), and all ranks of a job the same WORLD_SIZE",
                    job, printable(other)));
  }
  void warn_of_stranger(const v1::Registration& stranger, const std::string& other) {
    if (num_warnings.fetch_add(1) >= kMaxWarnings) return;
    log(LogLevel::kWarning,
        "rank {} of another job ({}; pid {} on {}) came to this job's place to meet ({}) and was "
        "turned away",
        stranger.rank(), printable(other), stranger.pid(), printable(stranger.host()), job);
  }

  const std::string job;
  std::atomic<int> num_warnings = 0;
  PeerStore store;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
  std::string local_host;
};

PeerStoreEdge::PeerStoreEdge(std::unique_ptr<Service> service) : service_(std::move(service)) {}
PeerStoreEdge::~PeerStoreEdge() = default;

int PeerStoreEdge::port() const { return service_->port; }
const std::string& PeerStoreEdge::local_host() const { return service_->local_host; }

Result<std::unique_ptr<PeerStoreEdge>> PeerStoreEdge::start(const std::string& host, int port,
                                                            std::string job) {
  const auto checked = check_tcp_port(host, port);
  if (!checked) return tl::unexpected(checked.error());
  auto service = std::make_unique<Service>(std::move(job));
  service->local_host = is_loopback_host(host) ? host : "localhost";
  grpc::ServerBuilder builder;
  // Two jobs that share a port would share their ranks.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(listen_target(host, port), grpc::InsecureServerCredentials(),
                           &service->port);
  builder.RegisterService(service.get());
  service->server = builder.BuildAndStart();
  if (!service->server || service->port == 0) {
    return make_error(ExitCode::kUsage,
                      "rank 0 cannot listen at port {} for the rendezvous of the job: set "
                      "HVDRUN_INIT=tcp://{}:PORT with a port that is free",
                      port, host);
  }
  return std::unique_ptr<PeerStoreEdge>(new PeerStoreEdge(std::move(service)));
}

}  // namespace hvd
