// One rank of a communicator that does all-reduces until it is told otherwise; collectives_test.py
// kills and stops such processes.
//   collective_worker COUNT TIMEOUT_MS [STEPS [MUTE_STEP]]   RANK, SIZE, FOLDER in the environment
// TCP_ONLY: no unix sockets between ranks of one machine. Without FOLDER it comes to its
// communicator as a worker of hvdrun does. Prints "step K" after each all-reduce of COUNT float32
// whose limit is TIMEOUT_MS. At MUTE_STEP it stays alive and connected, and calls nothing. Ends
// with 0 after STEPS, 3 with "failed after S s: TEXT" on standard output, 2 if a sum is wrong or an
// argument is.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "runtime/tcp_connect.h"
#include "tests/support/worker_connect.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kConnectTimeout{30};

struct Arguments {
  std::size_t count = 0;
  hvd::Call call;
  int num_steps = std::numeric_limits<int>::max();
  int mute_step = -1;
};

void say(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

int fail(const hvd::Error& error, Clock::time_point begin) {
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  say(fmt::format("failed after {:.3f} s: {}", seconds.count(), error.message));
  return 3;
}

hvd::Result<std::unique_ptr<hvd::Communicator>> connect() {
  const char* const folder = std::getenv("FOLDER");
  if (folder == nullptr) {
    const auto place = hvd::test::own_place();
    if (!place) return tl::unexpected(place.error());
    return hvd::test::connect_worker(*place, kConnectTimeout);
  }
  hvd::TcpSettings settings;
  settings.rank = std::atoi(std::getenv("RANK"));
  settings.size = std::atoi(std::getenv("SIZE"));
  settings.host = fmt::format("node{}", settings.rank);
  settings.has_local_sockets = std::getenv("TCP_ONLY") == nullptr;
  settings.nonce = "of a test: no secret";
  hvd::FolderRendezvous rendezvous(folder);
  return hvd::tcp_connect(rendezvous, settings, kConnectTimeout);
}

int work(hvd::Communicator& communicator, const Arguments& arguments) {
  const int size = communicator.size();
  const auto sum = static_cast<float>(size * (size + 1) / 2);
  std::vector<float> data(arguments.count);
  for (int step = 0; step < arguments.num_steps; ++step) {
    if (step == arguments.mute_step) pause();
    data.assign(arguments.count, static_cast<float>(communicator.rank() + 1));
    const auto begin = Clock::now();
    const auto done = communicator.all_reduce(data.data(), data.size(), hvd::DataType::kFloat32, {},
                                              arguments.call);
    if (!done) return fail(done.error(), begin);
    for (const float value : data) {
      if (value != sum) return 2;
    }
    say(fmt::format("step {}", step));
  }
  const auto begin = Clock::now();
  const auto ended = communicator.finalize(arguments.call);
  return ended ? 0 : fail(ended.error(), begin);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) return 2;
  Arguments arguments;
  arguments.count = std::strtoul(argv[1], nullptr, 10);
  arguments.call.timeout = std::chrono::milliseconds(std::atoi(argv[2]));
  if (argc > 3) arguments.num_steps = std::atoi(argv[3]);
  if (argc > 4) arguments.mute_step = std::atoi(argv[4]);
  const auto begin = Clock::now();
  const auto communicator = connect();
  if (!communicator) return fail(communicator.error(), begin);
  return work(**communicator, arguments);
}
