// One rank of the all-reduce benchmark (allreduce.py starts several, beside as many of Gloo).
//   allreduce_bench RANK SIZE FOLDER      TCP_ONLY in the environment: TCP between neighbours, too
// The ranks meet in FOLDER. Then, for each line "COUNT REPEATS" on standard input (which every rank
// must be given), REPEATS all-reduces of COUNT float32, each after a barrier; one line of times in
// seconds on standard output, and an error if a result is not the sum.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/tcp_connect.h"

namespace {

using Clock = std::chrono::steady_clock;

const hvd::Call kCall{std::chrono::seconds(60), nullptr};

hvd::Result<double> time_one(hvd::Communicator& communicator, std::vector<float>& data) {
  const auto met = communicator.barrier(kCall);
  if (!met) return tl::unexpected(met.error());
  const auto begin = Clock::now();
  const auto reduced =
      communicator.all_reduce(data.data(), data.size(), hvd::DataType::kFloat32, {}, kCall);
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  if (!reduced) return tl::unexpected(reduced.error());
  return seconds.count();
}

// Rank r holds r + 1 everywhere.
hvd::Result<std::string> measure(hvd::Communicator& communicator, std::size_t count, int repeats) {
  const auto own = static_cast<float>(communicator.rank() + 1);
  const auto sum = static_cast<float>(communicator.size() * (communicator.size() + 1) / 2);
  std::string times;
  std::vector<float> data(count);
  for (int i = 0; i < repeats; ++i) {
    data.assign(count, own);
    const auto seconds = time_one(communicator, data);
    if (!seconds) return tl::unexpected(seconds.error());
    for (const float value : data) {
      if (value != sum) return hvd::make_error("a sum is {}, not {}", value, sum);
    }
    times += fmt::format("{:.9f} ", *seconds);
  }
  return times;
}

int fail(const hvd::Error& error) {
  fmt::print(stderr, "allreduce_bench: {}\n", error.message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: allreduce_bench RANK SIZE FOLDER\n");
    return 2;
  }
  hvd::TcpSettings settings;
  settings.rank = std::atoi(argv[1]);
  settings.size = std::atoi(argv[2]);
  settings.has_local_sockets = std::getenv("TCP_ONLY") == nullptr;
  settings.nonce = "of a benchmark: no secret";
  hvd::FolderRendezvous rendezvous(argv[3]);
  auto communicator = hvd::tcp_connect(rendezvous, settings, std::chrono::seconds(60));
  if (!communicator) return fail(communicator.error());
  std::size_t count = 0;
  int repeats = 0;
  while (std::cin >> count >> repeats) {
    const auto times = measure(**communicator, count, repeats);
    if (!times) return fail(times.error());
    std::cout << *times << std::endl;
  }
  const auto ended = (*communicator)->finalize(kCall);
  return ended ? 0 : fail(ended.error());
}
