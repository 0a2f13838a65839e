// A rank of a job that goes wrong at one point of its life; phase_faults_test.py says what the
// others have to make of it.
//   phase_worker PHASE FAULT VICTIM DEADLINE_MS COUNT GATE
// PHASE, where rank VICTIM does it:
//   before_id      before its first word to the rendezvous
//   in_init        between the job's nonce and the last connection, on either side of leaving its
//                  own address
//   in_enqueue     where the others have entered an all-reduce and it is about to
//   in_collective  nowhere: the test does it, from outside, while all-reduces run
//   in_finalize    where it is about to finalize
// FAULT: kill, stop (SIGSTOP) or delay (sleeps for twice the deadline and goes on); none: a job
// that ends well.
// All ranks wait at GATE first (support/start_gate.h), then connect, do some all-reduces of COUNT
// float32 (in_collective: without end) and finalize. The deadline is that of the calls of the
// phase. Prints "ready", "running" in the all-reduces, and "fault at S" of the steady clock. Ends
// with the code of the first error, whose sentence it prints on standard error.
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tcp_connect.h"
#include "runtime/worker_exit.h"
#include "tests/support/start_gate.h"
#include "tests/support/worker_connect.h"

namespace {

using hvd::Communicator;
using hvd::Result;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAmpleTime = std::chrono::seconds(60);  // where no deadline is looked at
constexpr int kSteps = 4;

void say(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

int random_below(int limit) { return static_cast<int>(std::random_device()() % limit); }

class Plan {
 public:
  Plan(char** words, int rank)
      : phase_(words[1]),
        fault_(words[2]),
        deadline_(atoi(words[4])),
        count_(strtoul(words[5], nullptr, 10)),
        gate_(words[6]) {
    is_victim_ = atoi(words[3]) == rank;
  }

  [[nodiscard]] const std::string& gate() const { return gate_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool is(const char* phase) const { return phase_ == phase; }
  // The deadline is looked at in its phase only.
  [[nodiscard]] milliseconds start_timeout() const {
    return is("before_id") || is("in_init") ? deadline_ : kAmpleTime;
  }
  [[nodiscard]] hvd::Call call() const { return {deadline_, nullptr}; }

  // The point where it happens, if this is the rank and the phase.
  void pass(const char* phase) const {
    if (!is_victim_ || !is(phase) || fault_ == "none") return;
    const std::chrono::duration<double> now = Clock::now().time_since_epoch();
    say(fmt::format("fault at {:.6f}", now.count()));
    if (fault_ == "kill") raise(SIGKILL);
    if (fault_ == "stop") raise(SIGSTOP);
    if (fault_ == "delay") std::this_thread::sleep_for(2 * deadline_);
  }

 private:
  std::string phase_;
  std::string fault_;
  milliseconds deadline_;
  std::size_t count_;
  std::string gate_;
  bool is_victim_ = false;
};

// The job's store, in which a rank's own address is the first thing that it leaves.
class InitRendezvous final : public hvd::TcpRendezvous {
 public:
  // Both not owned, outlive this.
  InitRendezvous(hvd::TcpRendezvous& store, const Plan& plan) : store_(store), plan_(plan) {}

  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override {
    const bool is_late = random_below(2) == 1;
    if (!is_late) plan_.pass("in_init");
    auto put = store_.put(key, value, timeout);
    if (is_late) plan_.pass("in_init");
    return put;
  }
  Result<std::string> get(const std::string& key, Timeout timeout) override {
    return store_.get(key, timeout);
  }

 private:
  hvd::TcpRendezvous& store_;
  const Plan& plan_;
};

// As connect_worker() does it, with a point in the middle.
Result<std::unique_ptr<Communicator>> connect_with_fault(const hvd::LaunchPlace& place,
                                                         const Plan& plan) {
  auto store = hvd::open_rendezvous(place, plan.start_timeout());
  if (!store) return tl::unexpected(store.error());
  const std::string own = fmt::format("nonce of process {}", getpid());
  if (place.place.rank == 0) {
    const auto put = (*store)->put("nonce", own, plan.start_timeout());
    if (!put) return tl::unexpected(put.error());
  }
  const auto nonce = (*store)->get("nonce", plan.start_timeout());
  if (!nonce) return tl::unexpected(nonce.error().within("rank 0 did not leave the nonce"));
  hvd::TcpSettings settings;
  settings.rank = place.place.rank;
  settings.size = place.place.size;
  settings.host = place.place.host;
  settings.nonce = *nonce;
  InitRendezvous rendezvous(**store, plan);
  return hvd::tcp_connect(rendezvous, settings, plan.start_timeout());
}

Result<std::unique_ptr<Communicator>> connect(const hvd::LaunchPlace& place, const Plan& plan) {
  plan.pass("before_id");
  if (plan.is("in_init")) return connect_with_fault(place, plan);
  return hvd::test::connect_worker(place, plan.start_timeout());
}

Result<void> reduce(Communicator& communicator, std::vector<float>& data, const hvd::Call& call) {
  const auto done =
      communicator.all_reduce(data.data(), data.size(), hvd::DataType::kFloat32, {}, call);
  if (!done) return hvd::collective_error(communicator, done.error());
  return {};
}

Result<void> work(Communicator& communicator, const Plan& plan) {
  const int fault_step = random_below(kSteps);
  std::vector<float> data(plan.count());
  for (int step = 0; step < kSteps || plan.is("in_collective"); ++step) {
    if (step == fault_step) plan.pass("in_enqueue");
    if (step == 1) say("running");
    auto done = reduce(communicator, data, plan.call());
    if (!done) return done;
  }
  plan.pass("in_finalize");
  const auto ended = communicator.finalize(plan.call());
  if (!ended) return hvd::collective_error(communicator, ended.error());
  return {};
}

Result<void> run(const hvd::LaunchPlace& place, const Plan& plan) {
  say("ready");
  hvd::test::wait_for_gate(plan.gate());
  auto communicator = connect(place, plan);
  if (!communicator) return tl::unexpected(communicator.error());
  return work(**communicator, plan);
}

}  // namespace

int main(int argc, char** argv) {
  const auto place = hvd::test::own_place();
  if (argc != 7 || !place) {
    fmt::print(stderr,
               "usage: hvdrun ... phase_worker PHASE FAULT VICTIM DEADLINE_MS COUNT GATE\n");
    return 2;
  }
  const auto done = run(*place, Plan(argv, place->place.rank));
  if (done) return 0;
  fmt::print(stderr, "rank {}: {}\n", place->place.rank, done.error().message);
  return static_cast<int>(done.error().code);
}
