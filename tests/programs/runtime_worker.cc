// A worker of the runtime without its libraries: registers, opens the monitor, and passes a barrier
// in each step, which stands for a collective. What goes wrong is told:
//   runtime_worker [--steps N] [--step-ms MS] [--timeout S]
//                  [--fault NAME] [--fault-rank R] [--fault-step K]
// Faults: version plan rdma gpu (another registration), double (claims rank 0), absent (ends with 0
// unregistered), silent (never registers), stop-first and stop (SIGSTOP to itself), connect (stays
// there), lag (hands no collective over any more), spin (the same, at full speed), early (ends with
// 0 in mid-training), missed (the same, and the others miss it), killed (SIGKILL to itself, 0.3 s
// after the others have missed it).
// Registers the version of the libnccl.so.2 that it finds, 2.28.9 where there is none. Prints
// "rank R done", "rank R aborts: REASON" (exit 71), "rank R dumps: REASON"; a failed registration
// ends with the error's code.
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <thread>

#include "runtime/activity_board.h"
#include "runtime/rendezvous_link.h"
#include "runtime/worker_monitor.h"

namespace {

using hvd::Activity;
using std::chrono::milliseconds;

constexpr int kPeerLost = 71;
constexpr int kTerminated = 143;

struct Arguments {
  std::map<std::string, std::string> values = {{"steps", "3"},       {"step-ms", "10"},
                                               {"timeout", "30"},    {"fault", ""},
                                               {"fault-rank", "-1"}, {"fault-step", "2"}};
  [[nodiscard]] int number(const std::string& name) const { return atoi(values.at(name).c_str()); }
};

// False: an argument that does not exist.
bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (!name.starts_with("--") || !arguments.values.contains(name.substr(2))) return false;
    arguments.values[name.substr(2)] = argv[i + 1];
  }
  return argc % 2 == 1;
}

int number_of(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? 0 : atoi(text);
}

std::string text_of(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}

void sleep_for_ever() {
  while (true) pause();
}

[[noreturn]] void spin_for_ever() {
  volatile bool goes_on = true;
  while (goes_on) {
  }
  abort();
}

std::string found_nccl_version() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW);
  using GetVersion = int (*)(int*);
  const auto get =
      library == nullptr ? nullptr : reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
  int number = 22809;
  if (get != nullptr) get(&number);
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void say(const std::string& text) {
  fmt::print("{}\n", text);
  fflush(stdout);
}

class Worker {
 public:
  explicit Worker(const Arguments& arguments)
      : arguments_(arguments),
        rank_(number_of("RANK")),
        size_(number_of("WORLD_SIZE")),
        link_(std::move(*hvd::RendezvousLink::open_from_environment())) {}

  int run() {
    if (has_fault("absent")) return 0;
    if (has_fault("silent")) sleep_for_ever();
    if (has_fault("stop-first")) raise(SIGSTOP);
    const auto timeout =
        milliseconds(static_cast<long>(1000 * atof(arguments_.values.at("timeout").c_str())));
    const auto registered = link_.register_worker(registration(), timeout);
    if (!registered) {
      fmt::print(stderr, "rank {}: {}\n", rank_, registered.error().message);
      return static_cast<int>(registered.error().code);
    }
    enter("connecting");
    const auto monitor = watch();
    if (has_fault("connect")) sleep_for_ever();
    enter("running");
    for (int step = 0; step < arguments_.number("steps"); ++step) {
      if (step == arguments_.number("fault-step") && has_fault("early")) return 0;
      if (step == arguments_.number("fault-step")) {
        if (const auto code = miss_or_be_missed()) return *code;
      }
      if (!train(step)) return 1;
      if (step == 0) say(fmt::format("rank {} trains", rank_));
    }
    enter("finalizing");
    say(fmt::format("rank {} done", rank_));
    return 0;
  }

 private:
  // The exit code, if this step is the last one.
  std::optional<int> miss_or_be_missed() {
    const std::string& fault = arguments_.values.at("fault");
    if (fault != "missed" && fault != "killed") return std::nullopt;
    std::this_thread::sleep_for(milliseconds(300));  // a heartbeat has told that all are running
    if (!has_fault(fault)) {
      if (fault == "missed") std::this_thread::sleep_for(milliseconds(100));
      return kPeerLost;
    }
    if (fault == "missed") return 0;
    std::this_thread::sleep_for(milliseconds(300));
    raise(SIGKILL);
    return std::nullopt;
  }

  [[nodiscard]] bool has_fault(const std::string& name) const {
    return arguments_.values.at("fault") == name && arguments_.number("fault-rank") == rank_;
  }
  void enter(const char* phase) {
    board_.update([phase](Activity& activity) { activity.phase = phase; });
  }

  [[nodiscard]] hvdrun::v1::Registration registration() const {
    hvdrun::v1::Registration registration;
    const int local_rank = number_of("LOCAL_RANK");
    registration.set_rank(has_fault("double") ? 0 : static_cast<std::uint32_t>(rank_));
    registration.set_size(static_cast<std::uint32_t>(size_));
    registration.set_local_rank(static_cast<std::uint32_t>(local_rank));
    registration.set_host(text_of("HOROVOD_HOSTNAME"));
    registration.set_pid(getpid());
    registration.set_runtime_version("0.1.0");
    registration.set_nccl_version(has_fault("version") ? "2.27.3" : found_nccl_version());
    registration.set_gpu_uuid(fmt::format("GPU-{}", has_fault("gpu") ? 0 : local_rank));
    registration.set_plan(has_fault("plan") ? "model=tiny batch=2" : "model=tiny batch=1");
    registration.set_plan_hash(has_fault("plan") ? 2 : 1);
    registration.set_num_rdma_devices(has_fault("rdma") ? 1 : 8);
    return registration;
  }

  std::unique_ptr<hvd::WorkerMonitor> watch() {
    hvd::WorkerMonitor::Settings settings;
    settings.socket_path = text_of("HVDRUN_RENDEZVOUS");
    settings.rank = rank_;
    settings.size = size_;
    auto monitor = hvd::WorkerMonitor::start(
        settings, board_,
        [this](const std::string& reason) {
          say(fmt::format("rank {} aborts: {}", rank_, reason));
          _exit(kPeerLost);
        },
        [this](const std::string& reason) {
          say(fmt::format("rank {} dumps: {}", rank_, reason));
        });
    if (!monitor) abort();
    return std::move(*monitor);
  }

  // One step with one collective.
  bool train(int step) {
    board_.update([step](Activity& activity) { activity.step = static_cast<std::uint64_t>(step); });
    const bool is_faulty = step == arguments_.number("fault-step");
    if (is_faulty && has_fault("stop")) raise(SIGSTOP);
    if (is_faulty && has_fault("spin")) spin_for_ever();
    if (is_faulty && has_fault("lag")) {
      board_.update([](Activity& activity) {
        activity.missing = {"head.w", "head.b"};
        activity.num_missing = 9;
      });
      sleep_for_ever();
    }
    const std::string name = fmt::format("step {}", step);
    board_.update([&name](Activity& activity) {
      ++activity.scheduled;
      activity.waiting_for = "all_reduce of " + name;
    });
    const auto passed = link_.barrier(name, 0, static_cast<std::uint32_t>(rank_),
                                      static_cast<std::uint32_t>(size_), std::chrono::seconds(60));
    if (!passed) {
      fmt::print(stderr, "rank {}: {}\n", rank_, passed.error().message);
      // Its reason is on the way.
      std::this_thread::sleep_for(std::chrono::seconds(2));
      return false;
    }
    board_.update([](Activity& activity) {
      ++activity.completed;
      activity.waiting_for.clear();
    });
    std::this_thread::sleep_for(milliseconds(arguments_.number("step-ms")));
    return true;
  }

  const Arguments& arguments_;
  const int rank_;
  const int size_;
  hvd::RendezvousLink link_;
  hvd::ActivityBoard board_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments) || getenv("HVDRUN_RENDEZVOUS") == nullptr) {
    fmt::print(stderr, "usage: hvdrun -np N runtime_worker [--steps N] [--fault NAME] ...\n");
    return 2;
  }
  // As a trainer that has a second to save: an abort comes first, or nothing.
  signal(SIGALRM, [](int) { _exit(kTerminated); });
  signal(SIGTERM, [](int) { alarm(1); });
  return Worker(arguments).run();
}
