// The ranks of a TCP communicator as threads of one test process, one communicator each.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tcp_connect.h"

namespace hvd::test {

inline constexpr const char* kNonce = "the nonce of a test";

// Entries of /proc/self/NAME: "fd" counts descriptors, "task" threads.
inline int count_own(const char* name) {
  DIR* const dir = opendir((std::string("/proc/self/") + name).c_str());
  int count = 0;
  while (dir != nullptr && readdir(dir) != nullptr) ++count;
  if (dir != nullptr) closedir(dir);
  return count;
}

inline TcpSettings settings_of(int rank, int size) {
  TcpSettings settings;
  settings.rank = rank;
  settings.size = size;
  settings.host = fmt::format("node{}", rank);
  settings.nonce = kNonce;
  return settings;
}

// Runs body(rank) on a thread for each rank and waits for all.
inline void on_threads(int size, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

using Team = std::vector<std::unique_ptr<Communicator>>;

// has_local_sockets: or TCP on loopback for the data.
inline Team connect_team(int size, bool has_local_sockets = true) {
  InMemoryRendezvous rendezvous;
  Team team(static_cast<std::size_t>(size));
  on_threads(size, [&](int rank) {
    TcpSettings settings = settings_of(rank, size);
    settings.has_local_sockets = has_local_sockets;
    auto connected = tcp_connect(rendezvous, settings, std::chrono::seconds(20));
    EXPECT_TRUE(connected) << connected.error().message;
    if (connected) team[static_cast<std::size_t>(rank)] = std::move(*connected);
  });
  return team;
}

// body(communicator) on each rank's own thread.
inline void with_team(Team& team, const std::function<void(Communicator&)>& body) {
  on_threads(static_cast<int>(team.size()), [&](int rank) {
    const auto& communicator = team[static_cast<std::size_t>(rank)];
    if (communicator) body(*communicator);
  });
}

}  // namespace hvd::test
