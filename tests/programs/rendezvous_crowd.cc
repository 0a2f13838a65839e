// One worker of hvdrun that stands in for many ranks: process R of P is the ranks R*CLIENTS to
// R*CLIENTS + CLIENTS - 1 of P*CLIENTS, each with a connection to the agent and a thread of its own
// (a call of the rendezvous blocks its caller). In each round all of them connect and meet as ranks
// do (support/store_meeting.h), twice: pass 0 connects, pass 1 finds the connections open.
//   rendezvous_crowd [--clients 64] [--rounds 1] [--timeout SECONDS] [--gate PATH]
// With a gate every pass begins at the moment in the file PATH.ROUND.PASS. Each pass prints one
// line of JSON: round, pass, first_rank, clients, begun and passed (seconds of the steady clock:
// first call, last barrier passed), id (the first bytes; they are this test's own, a real one is a
// secret).
// Exit: 0, 1 with a sentence on stderr, 2 for a wrong argument.
#include <fmt/format.h>
#include <getopt.h>
#include <stdlib.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/start_gate.h"
#include "tests/support/store_meeting.h"

namespace {

using hvd::RendezvousLink;
using hvd::Result;
using Clock = std::chrono::steady_clock;

struct Crowd {
  std::uint32_t first_rank = 0;
  std::uint32_t clients = 64;
  std::uint32_t size = 0;  // ranks of all processes
  int rounds = 1;
  RendezvousLink::Timeout timeout = std::chrono::seconds(60);
  std::string gate;
};

// One stand-in rank in one round.
struct Client {
  std::optional<RendezvousLink> link;
  Result<std::string> id;
  Clock::time_point passed;
};

std::optional<Crowd> parse(int argc, char** argv) {
  const option options[] = {{"clients", required_argument, nullptr, 'c'},
                            {"rounds", required_argument, nullptr, 'r'},
                            {"timeout", required_argument, nullptr, 't'},
                            {"gate", required_argument, nullptr, 'g'},
                            {}};
  Crowd crowd;
  for (int found = 0; (found = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (found == 'c') crowd.clients = static_cast<std::uint32_t>(atoi(optarg));
    if (found == 'r') crowd.rounds = atoi(optarg);
    if (found == 't') crowd.timeout = std::chrono::seconds(atoi(optarg));
    if (found == 'g') crowd.gate = optarg;
    if (found == '?') return std::nullopt;
  }
  const char* const rank = getenv("RANK");
  const char* const size = getenv("WORLD_SIZE");
  if (rank == nullptr || size == nullptr || crowd.clients == 0) return std::nullopt;
  crowd.first_rank = static_cast<std::uint32_t>(atoi(rank)) * crowd.clients;
  crowd.size = static_cast<std::uint32_t>(atoi(size)) * crowd.clients;
  return crowd;
}

Result<std::string> meet(Client& client, const Crowd& crowd, const std::string& key,
                         std::uint32_t rank) {
  if (!client.link) {
    auto link = RendezvousLink::open_from_environment();
    if (!link) return tl::unexpected(link.error());
    client.link.emplace(std::move(*link));
  }
  return hvd::test::meet(*client.link, key, rank, crowd.size, crowd.timeout);
}

void meet_all(std::vector<Client>& clients, const Crowd& crowd, const std::string& key,
              Clock::time_point begin) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < crowd.clients; ++i) {
    threads.emplace_back([&, i] {
      std::this_thread::sleep_until(begin);
      clients[i].id = meet(clients[i], crowd, key, crowd.first_rank + i);
      clients[i].passed = Clock::now();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Result<void> run_pass(std::vector<Client>& clients, const Crowd& crowd, int round, int pass) {
  const std::string name = fmt::format("{}.{}", round, pass);
  const auto begin =
      crowd.gate.empty()
          ? Clock::now()
          : std::max(Clock::now(), hvd::test::wait_for_gate(crowd.gate + "." + name));
  meet_all(clients, crowd, "id." + name, begin);
  Clock::time_point passed;
  for (std::uint32_t i = 0; i < crowd.clients; ++i) {
    const std::uint32_t rank = crowd.first_rank + i;
    if (!clients[i].id) {
      return tl::unexpected(clients[i].id.error().within(fmt::format("rank {}", rank)));
    }
    if (*clients[i].id != *clients[0].id) return hvd::make_error("rank {} got another id", rank);
    passed = std::max(passed, clients[i].passed);
  }
  std::cout << nlohmann::json{{"round", round},
                              {"pass", pass},
                              {"first_rank", crowd.first_rank},
                              {"clients", crowd.clients},
                              {"begun", seconds_of(begin)},
                              {"passed", seconds_of(passed)},
                              {"id", hvd::hex_of(clients[0].id->substr(0, 16))}}
            << std::endl;
  return {};
}

Result<void> run_round(const Crowd& crowd, int round) {
  std::vector<Client> clients(crowd.clients);
  auto done = run_pass(clients, crowd, round, 0);
  if (done) done = run_pass(clients, crowd, round, 1);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  const auto crowd = parse(argc, argv);
  if (!crowd) {
    fmt::print(stderr,
               "usage: RANK=R WORLD_SIZE=P rendezvous_crowd [--clients N] [--rounds N] "
               "[--timeout S] [--gate PATH]\n");
    return 2;
  }
  for (int round = 0; round < crowd->rounds; ++round) {
    const auto done = run_round(*crowd, round);
    if (done) continue;
    fmt::print(stderr, "{}\n", done.error().message);
    return 1;
  }
  return 0;
}
