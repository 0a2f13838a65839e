// Holds a test's programs back until the test lets all of them go at one moment, so that what a
// busy machine needs to start them is in no time limit and in no measured time. The gate is a file
// that appears (by rename, with all its content) when it opens: a moment of the steady clock in
// seconds, which all processes of a machine share; an empty file, or one with a moment that has
// passed, lets go at once.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace hvd::test {

// Returns that moment; does not sleep until it.
inline std::chrono::steady_clock::time_point wait_for_gate(const std::string& path) {
  for (;;) {
    std::ifstream file(path);
    double moment = 0;
    if (file.is_open()) {
      file >> moment;
      return std::chrono::steady_clock::time_point(
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(
              std::chrono::duration<double>(moment)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace hvd::test
